"""The shipped configs validate, and train, shortened, to the three files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engines.check import check
from engines.contract.config import load_config
from engines.runs import launch
from projects.controls.recordings import write_recording
from tests.engines.conftest import LiveRun
from tests.projects.controls.sessions import random_session

CONFIGS = Path(__file__).parents[3] / "configs"
SHORT = (
    "model.d_model=16", "model.nhead=2", "model.num_layers=1", "model.dim_feedforward=16", "launch.threads=1",
    "training.epochs=2", "training.steps_per_epoch=3", "training.warmup_epochs=1",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for k in range(3):
        write_recording(tmp_path / "recordings" / f"s{k}.npz", random_session(f"s{k}", 90, k))
    return tmp_path / "recordings"


def test_the_two_source_documents_differ_in_length_and_class_weights() -> None:
    one, two = (load_config(CONFIGS / name).settings for name in ("controls_v2.yaml", "controls_v2_seed001.yaml"))
    assert (one.training.epochs, one.training.patience) == (150, 25)
    assert (two.training.epochs, two.training.patience) == (200, 30)
    before, after = one.model_dump(), two.model_dump()
    assert before["data"].pop("pos_weight") == "neg_pos"
    assert after["data"].pop("pos_weight") == "total_2pos"
    for settings in (before, after):
        for key in ("epochs", "patience"):
            del settings["training"][key]
    assert before == after


@pytest.mark.parametrize("name", ["controls_v2.yaml", "controls_v2_seed001.yaml", "controls_curriculum.yaml"])
def test_a_shipped_config_passes_the_check(name: str, folder: Path) -> None:
    found = check(CONFIGS / name, [f"data.path={folder}", *SHORT])
    assert found["faults"] == []
    assert found["data"]["train_sessions"] == 2


def test_a_fault_of_a_late_stage_is_found_by_the_check(folder: Path) -> None:
    curriculum = CONFIGS / "controls_curriculum.yaml"
    for change, sentence in {
        "stages.2.frozen=[encodr.*]": "'inventory': frozen: no parameter matches 'encodr.*' (did you mean 'encoder'?)",
        "stages.1.data=fight": "no training session has the type 'fight'",
        "stages.1.heads=[action.atack]": "'combat': there is no head 'action.atack' (did you mean 'action.attack'?)",
    }.items():
        found = check(curriculum, [f"data.path={folder}", *SHORT, f"training.{change}"])
        assert len(found["faults"]) == 1
        assert sentence in found["faults"][0]


def test_both_source_documents_configs_train_to_the_three_files(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    names = ("controls_v2.yaml", "controls_v2_seed001.yaml")
    runs = [LiveRun(launch.prepare_training(CONFIGS / name, [f"data.path={folder}", *SHORT])) for name in names]
    for live in runs:
        assert live.here() == "finished", live.log()
        made = {file.name for file in live.run.export.iterdir()}
        assert made >= {"control_policy_v2.pt", "control_config_v2.json", "training_log_v2.json"}
        exported = json.loads((live.run.export / "control_config_v2.json").read_text())
        assert exported["training"]["epochs_trained"] == 2
