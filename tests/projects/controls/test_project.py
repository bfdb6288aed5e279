"""The project from data to exported files, at a tiny size."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from engines.basics.errors import UserError
from engines.training.project import Context, Result, Split, TrainingLog
from projects.controls.config import ControlsConfig
from projects.controls.editions import NEWEST
from projects.controls.layout import ACTION, BINARY, CONTROL_NAMES
from projects.controls.model import ControlTransformer
from projects.controls.project import ControlsProject
from projects.controls.recordings import write_recording
from projects.controls.spec import SPEC
from tests.projects.controls.sessions import random_session

CPU = torch.device("cpu")
HEADS = frozenset(head.name for head in SPEC.heads)
CONTEXT = Context(step=0, epoch=0, progress=0.0, stage="", heads=HEADS)
LOG = TrainingLog(({"epoch": 1, "train.loss": math.nan, "score": 0.5}, {"epoch": 2, "score": 0.6}), 2, 0.6)


def config(path: Path, **changes: Any) -> ControlsConfig:
    model = {"d_model": 16, "nhead": 2, "num_layers": 1, "dim_feedforward": 16}
    return ControlsConfig.model_validate(
        {"project": "controls", "data": {"path": str(path)}, "model": model, **changes}
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for k in range(5):
        session = random_session(f"s{k}", 60 + k, k, "fight" if k % 2 else "walk")
        session.controls[:, 12] = 0  # nobody ever swaps hands
        write_recording(tmp_path / "recordings" / f"s{k}.npz", session)
    return tmp_path / "recordings"


def evaluated(cfg: ControlsConfig, edition: int = NEWEST) -> tuple[ControlsProject, Split, nn.Module, Result]:
    project = ControlsProject()
    project.edition = edition
    split = project.data(cfg, CPU)
    torch.manual_seed(0)
    model = project.model(cfg, split).eval()
    evaluation = project.evaluation(cfg, split)
    with torch.inference_mode():
        for indices in torch.split(torch.arange(len(split.validation)), 7):
            evaluation.add(model, split.validation.batch(indices, None), CONTEXT)
        return project, split, model, evaluation.result()


def test_data_is_split_by_session_and_summed_up(folder: Path) -> None:
    project, cfg = ControlsProject(), config(folder)
    split = project.data(cfg, CPU)
    held_out = split.summary["validation_sessions"]
    assert len(held_out) == 1
    assert len(split.validation) == 60 + int(held_out[0][1]) - 29
    assert len(split.train) + len(split.validation) == sum(60 + k - 29 for k in range(5))
    assert split.summary["session_types"] == {"fight": 2, "walk": 3}
    assert split.summary["note"] == (
        "Pressed on no training frame where it is judged: swap_offhand; expected at least one, so this cannot be "
        "learned (class weight 1)."
    )
    assert split.summary["pressed"]["swap_offhand"] == 0
    assert split.summary["pressed"]["attack"] > 0
    json.dumps(split.summary)


@pytest.mark.behaviour("control-without-positives-without")
def test_a_control_without_positives_trains_and_is_flagged(folder: Path) -> None:
    project, split, model, result = evaluated(config(folder))
    batch = split.train.batch(torch.arange(64), np.random.default_rng(0))
    losses = project.losses(model.train(), batch, CONTEXT)
    torch.autograd.backward([loss.total for loss in losses.values()])
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())
    assert "no training frame where it is judged: swap_offhand" in result.tables["controls"].note
    rows = {row[0]: row for row in result.tables["controls"].rows}
    assert rows["swap_offhand"][2] == 0
    assert rows["swap_offhand"][-1] is None


def test_only_the_heads_of_the_stage_have_losses(folder: Path) -> None:
    project, split, model, _ = evaluated(config(folder))
    batch = split.train.batch(torch.arange(8), None)
    stage = replace(CONTEXT, heads=frozenset({"look", "action"}))
    assert set(project.losses(model, batch, stage)) == {"look", "action"}
    assert set(project.counts(batch, stage)) == {"look", "action"}
    assert set(project.losses(model, batch, CONTEXT)) == HEADS


def test_a_stage_can_train_on_one_type_of_session(folder: Path) -> None:
    cfg = config(folder)
    project = ControlsProject()
    split = project.data(cfg, CPU)
    held_out = split.summary["validation_sessions"][0]
    chosen = project.select(cfg, split, "fight")
    assert len(chosen) == sum(60 + k - 29 for k in range(5) if k % 2 and f"s{k}" != held_out)
    with pytest.raises(UserError, match=r"no training session has the type 'figth' \(did you mean 'fight'\?\)"):
        project.select(cfg, split, "figth")


def test_evaluation_in_pieces_equals_evaluation_at_once(folder: Path) -> None:
    cfg = config(folder)
    project, split, model, pieces = evaluated(cfg)
    whole = project.evaluation(cfg, split)
    with torch.inference_mode():
        whole.add(model, split.validation.batch(torch.arange(len(split.validation)), None), CONTEXT)
        result = whole.result()
    assert result.score == pytest.approx(pieces.score, abs=1e-6)
    assert {*result.values} >= {"action_f1", "idle_accuracy", "hotbar_accuracy", "cursor_pixels"}


def test_review_arrays_tell_the_same_story_as_the_table(folder: Path) -> None:
    _, split, _, result = evaluated(config(folder))
    review, n = result.review, len(split.validation)
    assert review["names"].tolist() == [CONTROL_NAMES[column] for column in BINARY]
    assert review["scores"].shape == review["targets"].shape == review["masks"].shape == (n, 15)
    assert review["groups"].tolist() == [0] * n
    for k, row in enumerate(result.tables["controls"].rows):
        on = (review["scores"][:, k] >= 0.5) & review["masks"][:, k]
        wanted = review["targets"][:, k] & review["masks"][:, k]
        assert row[2] == wanted.sum()
        f1 = 2 * (on & wanted).sum() / (on.sum() + wanted.sum()) if wanted.sum() else None
        assert row[-1] == (pytest.approx(f1) if f1 is not None else None)


def test_the_report_puts_the_run_beside_its_baselines(folder: Path) -> None:
    cfg = config(folder)
    project, split, model, result = evaluated(cfg, edition=1)  # so few frames have no control with 20 positives
    table = project.report(cfg, split, model, result)["baselines"]
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert rows["this run"]["score"] == result.score
    assert {"all-zero", "repeat-last", "logistic"} <= rows.keys()
    assert rows["all-zero"]["action_f1"] == 0
    for file in folder.iterdir():
        file.unlink()
    gone = project.report(cfg, split, model, result)["baselines"]
    assert gone.rows == ()
    assert "no recordings" in gone.note


def test_the_exported_files_are_enough_to_run_the_policy(folder: Path, tmp_path: Path) -> None:
    cfg = config(folder)
    project, split, model, result = evaluated(cfg)
    result = replace(result, values={**result.values, "look_mse": math.nan})
    out = tmp_path / "export"
    project.export(cfg, out, model, split, result, LOG)
    assert {file.name for file in out.iterdir()} == {
        "control_policy_v2.pt", "control_config_v2.json", "training_log_v2.json",
    }  # fmt: skip
    text = (out / "control_config_v2.json").read_text()
    exported = json.loads(text, parse_constant=lambda constant: pytest.fail(f"bare {constant}"))
    sizes = exported["model"]
    assert {
        "input_dim": 671,
        "num_action": 12,
        "num_look": 2,
        "num_hotbar": 9,
        "num_cursor": 2,
    }.items() <= sizes.items()
    names = ("d_model", "nhead", "num_layers", "dim_feedforward", "dropout", "max_seq_len")
    again = ControlTransformer(**{name: sizes[name] for name in names}).eval()
    again.load_state_dict(torch.load(out / "control_policy_v2.pt", weights_only=True))
    batch = split.validation.batch(torch.arange(5), None)
    expected = model(batch["features"], batch["mask"])
    for name, value in again(batch["features"], batch["mask"]).items():
        assert torch.equal(value, expected[name])
    assert exported["version"] == 2
    assert exported["thresholds_reviewed"] is False
    unsupported = [row[0] for row in result.tables["controls"].rows if not row[2]]
    assert "swap_offhand" in unsupported
    assert exported["thresholds_unsupported"] == unsupported
    assert len(exported["thresholds"]["action"]) == 12
    assert exported["thresholds"]["action"][ACTION.index(12)] == 0.5
    assert len(exported["thresholds"]["inv_click"]) == 3
    assert exported["post_processing"]["look_rate_limit"] == 0.3
    training = exported["training"]
    assert (training["epochs_trained"], training["best_combined_score"]) == (2, 0.6)
    assert training["per_head_metrics"]["look_mse"] is None
    assert training["pos_weights"]["unsupported"] == ["swap_offhand"]
    log = json.loads((out / "training_log_v2.json").read_text())
    assert log["epochs"] == [{"epoch": 1, "train.loss": None, "score": 0.5}, {"epoch": 2, "score": 0.6}]


@pytest.mark.parametrize("search", ["exact", "grid"])
def test_thresholds_of_the_export_are_the_best_there_are(folder: Path, tmp_path: Path, search: str) -> None:
    cfg = config(folder, thresholds={"search": search})
    project, split, model, result = evaluated(cfg)
    project.export(cfg, tmp_path, model, split, result, LOG)
    exported = json.loads((tmp_path / "control_config_v2.json").read_text())["thresholds"]["action"]
    review = result.review
    supported = [k for k, row in enumerate(result.tables["controls"].rows[:12]) if row[2]]
    assert len(supported) > 5
    for k in supported:
        kept = review["masks"][:, k]
        scores, wanted = review["scores"][kept, k], review["targets"][kept, k]
        idle = review["idle"][kept]

        def objective(threshold: float, scores: Any = scores, wanted: Any = wanted, idle: Any = idle) -> float:
            on = scores >= threshold
            false_yes = on[idle].mean() if idle.any() else 0.0
            return float(2 * (on & wanted).sum() / (on.sum() + wanted.sum()) - 0.5 * false_yes)

        candidates = [step / 20 for step in range(2, 19)] if search == "grid" else [*np.unique(scores), 2.0]
        assert objective(exported[k]) == pytest.approx(max(objective(candidate) for candidate in candidates))
        assert search == "exact" or exported[k] in candidates


def test_weights_and_columns_are_those_of_the_source_document() -> None:
    assert config(Path("x")).loss_weights.model_dump() == {
        "action": 1.0, "look": 0.5, "hotbar": 0.3, "cursor": 0.5, "inv": 0.3, "idle": 0.3,
    }  # fmt: skip
    assert [
        column.title for column in SPEC.columns
    ] == "Ep TrLoss Act Look Hbar Curs Inv Idle VlLoss VlF1 Score LR".split()


@pytest.mark.parametrize(
    ("section", "value", "sentence"),
    [
        ("model", {"d_model": 30, "nhead": 8}, "d_model 30 must be a multiple of nhead 8"),
        ("model", {"max_seq_len": 29}, "greater than or equal to 30"),
        ("loss_weights", {"action": -1.0}, "greater than or equal to 0"),
        ("loss_weights", {"actoin": 1.0}, "Extra inputs are not permitted"),
        ("thresholds", {"action": 1.0}, "less than 1"),
    ],
)
def test_settings_out_of_range_are_refused(section: str, value: dict[str, float], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        config(Path("x"), **{section: value})
