"""A run scored on other drives: on those that validated it, it finds what the run said."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engines.basics.errors import DataError
from engines.compare import compare
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runtime.attempt import carry_out
from engines.training.engine import train
from engines.training.trained import open_run
from projects.sim.drives import write_drive
from projects.sim.evaluate_run import evaluate
from projects.sim.labels import LABELS
from projects.sim.project import SimProject
from projects.sim.spec import SPEC
from tests.projects.controls.task_context import Listener
from tests.projects.sim.logs import random_drive

CONFIG = """
project: sim
data: {path: DRIVES}
model: {llm: tiny-llama, vision: grid, frames: 8, tokens: 4}
training: {epochs: 2, steps_per_epoch: 3, batch_size: 16}
launch: {device: cpu, threads: 1}
output: {keep_epochs: 1}
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A finished run on five drives, one of them held out; the drives lie beside it."""
    base = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(base / "cache"))
        (base / "drives").mkdir()
        for k in range(5):
            write_drive(base / "drives" / f"d{k}.npz", random_drive(f"d{k}", 30, k))
        (base / "config.yaml").write_text(CONFIG.replace("DRIVES", str(base / "drives")))
        run = launch.prepare_training(base / "config.yaml", [], run_dir=base / "a-run")
        assert carry_out(run, 1, train) == 0
    return run


@pytest.fixture(autouse=True)
def cached(trained: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(trained.path.parent / "cache"))


def test_d8_a_run_leaves_what_the_plan_says(trained: RunDirectory) -> None:
    below = {str(path.relative_to(trained.path)) for path in trained.path.rglob("*")}
    assert below >= {
        "config_resolved.yaml", "checkpoints/best.pt", "checkpoints/last.pt", "checkpoints/epoch_001.pt",
        "metrics/train_metrics.jsonl", "metrics/val_metrics.jsonl", "export/sim_v0_infer.py", "export/labels.json",
    }  # fmt: skip
    for line in trained.val_metrics.read_text().splitlines():
        assert {"risk_high_recall", "risk_high_fn_rate", "action_accuracy", "risk_f1", "action_f1", "ms"} < set(
            json.loads(line)
        )
    labels = json.loads((trained.path / "export" / "labels.json").read_text())
    assert {task: list(names.values()) for task, names in labels.items()} == {
        task: list(names) for task, names in LABELS.items()
    }


def test_the_time_of_an_answer_is_no_difference_of_two_runs(trained: RunDirectory, tmp_path: Path) -> None:
    for name, differs in (("ms", None), ("risk_f1", 1)):
        again = RunDirectory(tmp_path / name)
        shutil.copytree(trained.path, again.path, symlinks=True, ignore=shutil.ignore_patterns("*.sock"))
        changed = re.sub(rf'"{name}":[^,}}]+', f'"{name}":0.125', trained.events.read_text())
        assert changed != trained.events.read_text()
        again.events.write_text(changed)
        assert compare(trained, again)["first_epoch"] == differs


def test_on_the_drive_that_validated_it_scores_as_the_run_said(trained: RunDirectory, tmp_path: Path) -> None:
    opened = open_run(trained)
    held = SimProject().data(opened.settings, torch.device("cpu")).summary["split"].split("whole drives: ")[1]
    shutil.copy(trained.path.parent / "drives" / f"{held}.npz", tmp_path / f"{held}.npz")
    context = Listener()
    evaluate({"run": str(trained.path), "data": str(tmp_path)}, context)
    found = {row[0]: row[1] for row in context.tables["headline"].rows}
    assert found.pop("score") == pytest.approx(opened.log.best_score, abs=1e-5)
    shown = [column.source.removeprefix("validation.") for column in SPEC.columns if "validation." in column.source]
    assert list(found) == shown
    expected = {name: opened.values[name] for name in shown}
    assert found.pop("ms") != expected.pop("ms")  # the time of an answer is measured again
    assert found == pytest.approx(expected, abs=1e-4)
    report = json.loads(trained.report.read_text())["tables"]
    assert set(report) <= {*context.tables, "stages"}
    for name in ("baselines", "classes"):
        ours, theirs = context.tables[name].rows, report[name]["rows"]
        for row, other in zip(ours, theirs, strict=True):
            assert list(row) == pytest.approx(list(other), abs=1e-3), name


def test_what_cannot_be_scored_is_a_sentence(trained: RunDirectory, tmp_path: Path) -> None:
    blind = replace(random_drive("blind", 30, 9), frames=None)
    write_drive(tmp_path / "blind.npz", blind)
    with pytest.raises(DataError, match="its drives have no frames, but the run was trained on drives with frames"):
        evaluate({"run": str(trained.path), "data": str(tmp_path)}, Listener())
    with pytest.raises(DataError, match=str(tmp_path / "nowhere")):
        evaluate({"run": str(trained.path), "data": str(tmp_path / "nowhere")}, Listener())
