"""The project as the engine uses it: data, checkpoints, features made once, and the plan's own config."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from engines.basics.errors import DataError, UserError
from engines.training.comparison import LOSES
from engines.training.evaluate import evaluate
from engines.training.project import Batch, Context
from projects.sim.config import SimConfig
from projects.sim.drives import write_drive
from projects.sim.labels import LABELS
from projects.sim.network import SimNetwork
from projects.sim.project import SimProject
from projects.sim.report import speed_table
from projects.sim.spec import SPEC
from tests.projects.sim.logs import random_drive

CPU = torch.device("cpu")
HEADS = frozenset(head.name for head in SPEC.heads)
CONTEXT = Context(step=0, epoch=0, progress=0.0, stage="", heads=HEADS)
CONFIGS = Path(__file__).resolve().parents[3] / "configs"
TINY = {"llm": "tiny-llama", "vision": "grid", "frames": 4, "tokens": 2}


def config(path: Path, **changes: Any) -> SimConfig:
    model = TINY | changes.pop("model", {})
    return SimConfig.model_validate({"project": "sim", "data": {"path": str(path)}, "model": model, **changes})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for k in range(5):
        write_drive(make(tmp_path / "data") / f"d{k}.npz", random_drive(f"d{k}", 30, k))
    return tmp_path / "data"


def make(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    return path


def opened(cfg: SimConfig) -> tuple[SimProject, Any, SimNetwork]:
    project = SimProject()
    split = project.data(cfg, CPU)
    torch.manual_seed(0)
    model = project.model(cfg, split)
    assert isinstance(model, SimNetwork)
    return project, split, model


def test_a_checkpoint_holds_what_trains_and_the_statistics_alone(folder: Path) -> None:
    project, split, model = opened(config(folder))
    state = project.trainable_state(model)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert set(state) == trained | {"telemetry_mean", "telemetry_std", "feature_mean", "feature_std"}
    torch.testing.assert_close(state["telemetry_mean"], split.train.telemetry.mean(0))
    _, _, other = opened(config(folder))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(1)
    project.load_trainable_state(other, project.trainable_state(model))
    batch = split.validation.batch(torch.arange(4), None)
    assert torch.equal(other.eval()(batch)["risk_logits"], model.eval()(batch)["risk_logits"])


def test_a_checkpoint_without_statistics_or_of_another_model_is_refused(folder: Path) -> None:
    project, _, model = opened(config(folder))
    state = project.trainable_state(model)
    del state["telemetry_std"]
    with pytest.raises(RuntimeError, match="telemetry_std"):
        project.load_trainable_state(model, state)


def test_d4_decay_is_for_matrices_alone_and_frozen_weights_are_in_no_group(folder: Path) -> None:
    project, _, model = opened(config(folder))
    decayed, plain = project.param_groups(model, 0.01)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    assert all(names[id(parameter)].endswith("weight") for parameter in decayed["params"])
    assert {names[id(p)] for p in plain["params"]} >= {"task_token", "projector.bias", "heads.risk.bias"}
    assert plain["weight_decay"] == 0
    grouped = {names[id(p)] for group in (decayed, plain) for p in group["params"]}
    assert grouped == {name for name, parameter in model.named_parameters() if parameter.requires_grad}


def test_features_are_made_once_and_a_damaged_cache_is_said(folder: Path) -> None:
    cfg = config(folder)
    first = SimProject().data(cfg, CPU)
    told: list[tuple[int, int, str]] = []
    project = SimProject()
    project.data_progress = lambda *said: told.append(said)  # type: ignore[method-assign]
    again = project.data(cfg, CPU)
    assert not told
    rows = torch.arange(5)
    assert torch.equal(first.train.batch(rows, None)["vis_feats"], again.train.batch(rows, None)["vis_feats"])
    kept = sorted((folder.parent / "cache").rglob("*.npz"))
    assert len(kept) == 5
    content = kept[0].read_bytes()
    kept[0].write_bytes(content[:100])
    with pytest.raises(DataError, match=r"kept features are damaged .* delete the file"):
        SimProject().data(cfg, CPU)
    np.savez(kept[0], features=np.zeros((30, 9), np.float32))
    with pytest.raises(DataError, match=r"kept features are float32 \(30, 9\)"):
        SimProject().data(cfg, CPU)


def test_other_frames_under_the_same_name_have_features_of_their_own(folder: Path) -> None:
    cfg = config(folder)
    SimProject().data(cfg, CPU)
    write_drive(folder / "d0.npz", random_drive("d0", 30, 99))
    SimProject().data(cfg, CPU)
    assert len(list((folder.parent / "cache").rglob("*.npz"))) == 6


def test_raw_frames_give_the_logits_of_cached_features(folder: Path) -> None:
    _, cached, one = opened(config(folder))
    project, raw, other = opened(config(folder, model={"cached": False}))
    other.set_statistics(raw.train.telemetry, cached.train.features)
    project.load_trainable_state(other, SimProject().trainable_state(one))
    rows = torch.arange(3)
    batch = raw.train.batch(rows, None)
    assert "vis_feats" not in batch
    torch.testing.assert_close(
        other.eval()(batch)["action_logits"], one.eval()(cached.train.batch(rows, None))["action_logits"],
        rtol=1e-4, atol=1e-5,
    )  # fmt: skip


def test_drives_without_frames_have_a_prefix_of_two(tmp_path: Path) -> None:
    for k in range(5):
        write_drive(make(tmp_path / "data") / f"d{k}.npz", random_drive(f"d{k}", 30, k, pictures=False))
    project, split, model = opened(config(tmp_path / "data"))
    batch = split.train.batch(torch.arange(4), None)
    assert model.tokens(batch).shape[1] == 2
    assert set(project.losses(model, batch, CONTEXT)) == HEADS
    write_drive(tmp_path / "data" / "d0.npz", random_drive("d0", 30, 0))
    with pytest.raises(DataError, match=r"1 of 5 drives have frames \(d0 …\); expected all or none"):
        SimProject().data(config(tmp_path / "data"), CPU)


def test_only_the_heads_of_a_stage_have_losses_and_counts(folder: Path) -> None:
    project, split, model = opened(config(folder))
    batch = split.train.batch(torch.arange(8), None)
    stage = replace(CONTEXT, heads=frozenset({"risk"}))
    assert set(project.losses(model, batch, stage)) == set(project.counts(batch, stage)) == {"risk"}


@pytest.mark.parametrize("best_by", ["composite", "risk_high_recall"])
def test_d2_the_score_is_the_composite_or_plain_recall(folder: Path, best_by: str) -> None:
    cfg = config(folder, thresholds={"best_by": best_by})
    project, split, model = opened(cfg)
    evaluation = project.evaluation(cfg, split)
    with torch.inference_mode():
        for rows in torch.split(torch.arange(len(split.validation)), 5):
            evaluation.add(model.eval(), split.validation.batch(rows, None), CONTEXT)
    result = evaluation.result()
    assert result.score == result.values[best_by]
    assert set(result.review["groups"].tolist()) <= set(range(5))
    assert len(result.review["risk_high"]) == (split.validation.labels[:, 0] >= 0).sum()
    assert result.tables["risk confusion"].rows[0][0] == "none"


def test_the_report_marks_what_beats_the_run_and_says_how_long_an_answer_takes(folder: Path) -> None:
    cfg = config(folder, training={"batch_size": 16})
    project, split, model = opened(cfg)
    evaluation = project.evaluation(cfg, split)
    with torch.inference_mode():
        batch = split.validation.batch(torch.arange(len(split.validation)), None)
        losses = evaluation.add(model.eval(), batch, CONTEXT)
    means = {task: float(losses[task].total / losses[task].count) for task in LABELS}
    result = evaluation.result()
    result = replace(result, values={**means, **result.values})
    tables = project.report(cfg, split, model, result)
    table = tables["baselines"]
    rows: dict[Any, dict[str, Any]] = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    ours, theirs = rows["this run"], rows["telemetry and frames"]
    assert ours["risk F1"] == result.values["risk_f1"]
    better = [name for name in ("risk F1", "high recall", "reason F1", "action F1", "action accuracy")
              if theirs[name] > ours[name]]  # fmt: skip
    better += [f"{task} loss" for task in LABELS if theirs[f"{task} loss"] < means[task]]
    assert theirs[LOSES] == ", ".join(better)
    assert {"majority", "last label", "telemetry only", "frames only"} < set(rows)


def test_an_answer_is_timed_alone_and_in_a_batch_after_one_that_is_not(folder: Path) -> None:
    project, _, model = opened(config(folder))
    moments = iter(float(2**k) for k in range(99))
    rows = speed_table(model.eval(), project.validation, 16, clock=lambda: next(moments)).rows
    trained = sum(p.numel() for name, p in model.named_parameters() if not name.startswith("llm."))
    # 1 begins the first; 2 to 4 is the fastest; of the batch 2¹¹ begins the first and 2¹² to 2¹³ is the fastest
    assert rows == ((2, trained, 1, 2000.0, 2000.0), (2, trained, 16, 4096000.0, 256000.0))


def test_an_evaluation_times_the_answer_for_one_window(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = []

    def answer_ms(model: SimNetwork, batch: Batch) -> float:
        timed.append(batch)
        return 7.0

    monkeypatch.setattr("projects.sim.evaluation.answer_ms", answer_ms)
    cfg = config(folder)
    project, split, model = opened(cfg)
    result = evaluate(project, cfg, split, model, CONTEXT, {"risk": 1.0}, heads=["risk"], interrupted=lambda: False)
    assert result is not None
    assert result.values["ms"] == 7.0
    first = split.validation.batch(torch.arange(1), None)
    assert len(timed) == 1
    assert all(torch.equal(timed[0][name], first[name]) for name in ("telemetry", "vis_feats"))
    assert "validation.ms" in [column.source for column in SPEC.columns]


def test_classes_that_never_train_are_noted(folder: Path) -> None:
    for k in range(5):
        drive = random_drive(f"d{k}", 30, k)
        drive.labels[:, 0] = np.minimum(drive.labels[:, 0], 2)
        write_drive(folder / f"d{k}.npz", drive)
    summary = SimProject().data(config(folder), CPU).summary
    assert "No training window is risk high" in summary["note"]
    assert summary["train risk"].endswith(", high 0")
    kept = [k for k in range(5) if f"d{k}" not in summary["split"]]
    none = sum(int((random_drive(f"d{k}", 30, k).labels[3:, 0] == 0).sum()) for k in kept)
    assert summary["train risk"].startswith(f"none {none}, low ")


def test_what_does_not_fit_the_model_is_a_users_error(folder: Path) -> None:
    with pytest.raises(UserError, match=r"^model\.d is 32, but the language model is 64 wide"):
        opened(config(folder, model={"d": 32}))
    with pytest.raises(DataError, match=r"model\.dv is 7, but the features are 144 wide; set model\.dv to 144"):
        opened(config(folder, model={"dv": 7}))


def test_bf16_on_a_processor_without_it_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projects.sim.project.cpu_has_bf16", lambda: False)
    with pytest.raises(UserError, match=r"model\.llm_dtype bf16 would take .* use fp32"):
        SimProject().data(config(folder, model={"llm_dtype": "bf16"}), CPU)
    assert len(SimProject().data(config(folder), CPU).train)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": {"tokens": 9}}, "must be at most frames"),
        ({"model": {"llm": "none"}}, "d must be set where llm is none"),
        ({"data": {"path": ".", "train": "a"}}, "belong together"),
        ({"data": {"path": ".", "dataset": "a:B"}}, "needs train and validation"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        SimConfig.model_validate({"project": "sim", "data": {"path": "."}, **changes})


def test_d3_the_plans_defaults_are_ours() -> None:
    ours = SimConfig.model_validate({"project": "sim", "data": {"path": "."}})
    assert (ours.model.frames, ours.model.tokens, ours.training.batch_size, ours.training.epochs) == (8, 4, 64, 10)
    assert (ours.training.lr, ours.training.weight_decay, ours.training.grad_clip) == (1e-3, 0.01, 1.0)
    assert ours.training.warmup_epochs == 0
    assert (ours.thresholds.best_by, ours.model.confidence) == ("composite", False)
    assert ours.loss_weights.model_dump() == {"risk": 1.0, "reason": 0.5, "action": 1.0, "confidence": 0.1}
