"""A curriculum: what is off has no loss, no gradient and no part in the score, and a resume keeps its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from engines.contract.config import load_config
from engines.runs import launch
from engines.training.project import Context
from engines.training.stages import StagePlan
from projects.controls.batches import WindowSource
from projects.controls.config import ControlsConfig
from projects.controls.layout import ACTION, CONTROL_NAMES, HEADS, INV
from projects.controls.losses import off_controls
from projects.controls.masks import frame_masks
from projects.controls.metrics import SCORE_WEIGHTS, Prediction, Truth, score_controls
from projects.controls.project import ControlsProject
from projects.controls.recordings import write_recording
from projects.controls.spec import SPEC
from tests.engines.conftest import LiveRun, effective_table, tensors
from tests.projects.controls.sessions import random_session

CURRICULUM = Path(__file__).parents[3] / "configs" / "controls_curriculum.yaml"
TINY = ("model.d_model=16", "model.nhead=2", "model.num_layers=1", "model.dim_feedforward=16", "launch.threads=1")
MOVEMENT = CONTROL_NAMES[:7]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for k in range(4):
        write_recording(tmp_path / "recordings" / f"s{k}.npz", random_session(f"s{k}", 90, k))
    return tmp_path / "recordings"


def stages(folder: Path, *settings: str) -> tuple[ControlsConfig, list[Context], StagePlan]:
    """The shipped curriculum at a tiny size, with the context of each of its stages."""
    loaded = load_config(CURRICULUM, [f"data.path={folder}", *TINY, *settings])
    assert isinstance(loaded.settings, ControlsConfig)
    plan = StagePlan(loaded.settings.training, SPEC.heads)
    contexts = [
        Context(0, 0, 0.0, stage.name, on.heads, on.parts) for stage, on in zip(plan.stages, plan.switches, strict=True)
    ]
    return loaded.settings, contexts, plan


def test_the_shipped_curriculum_adds_combat_then_the_inventory(folder: Path) -> None:
    _, (movement, combat, inventory), plan = stages(folder)
    assert [stage.name for stage in plan.stages] == ["movement", "combat", "inventory"]
    on = [set(CONTROL_NAMES) - off_controls(ctx) for ctx in (movement, combat, inventory)]
    look = {"look_yaw", "look_pitch"}
    assert on[0] == {*MOVEMENT, *look}
    assert on[1] == {*MOVEMENT, *look, "attack", "use_item", "drop_item", "swap_offhand"}
    assert on[2] == set(CONTROL_NAMES)
    assert [switches.frozen for switches in plan.switches] == [("hotbar.*", "cursor.*", "inv.*")] * 2 + [()]


def test_what_is_off_has_no_loss_and_no_gradient(folder: Path) -> None:
    cfg, (movement, _, everything), plan = stages(folder, "model.dropout=0")
    project = ControlsProject()
    split = project.data(cfg, torch.device("cpu"))
    model = project.model(cfg, split)
    project.freeze(model, list(plan.switches[0].frozen))
    batch = split.train.batch(torch.arange(64), None)
    losses = project.losses(model, batch, movement)
    assert set(losses) == {"action", "look", "idle"}
    gameplay, idle = int(batch["gameplay"].sum()), int(batch["idle"].sum())
    assert losses["action"].count == 7 * gameplay, "open_inventory, which counts on every frame, is off"
    assert losses["idle"].count == 7 * idle
    counts = project.counts(batch, movement)
    assert {name: int(count) for name, count in counts.items()} == {
        name: int(loss.count) for name, loss in losses.items()
    }
    with torch.inference_mode():
        idle_chances = model(batch["features"], batch["mask"])["action_logits"].sigmoid()[batch["idle"], :7]
    assert losses["idle"].total.item() == pytest.approx(float(idle_chances.sum()), rel=1e-5)
    torch.autograd.backward([loss.total for loss in losses.values()])
    for name, parameter in model.named_parameters():
        off = name.split(".")[0] in ("hotbar", "cursor", "inv")
        assert (parameter.grad is None) == (not parameter.requires_grad) == off, name
    last = model.get_parameter("action.3.weight").grad
    assert last is not None
    assert (last[:7].abs().sum(1) > 0).all()
    assert (last[7:] == 0).all()
    whole = project.losses(model, batch, everything)
    assert whole["action"].count == 11 * gameplay + len(batch["idle"])
    assert whole["idle"].count == 12 * idle


def test_the_idle_penalty_without_any_action_counts_nothing(folder: Path) -> None:
    cfg, (movement, *_), _ = stages(folder)
    project = ControlsProject()
    split = project.data(cfg, torch.device("cpu"))
    batch = split.train.batch(torch.arange(64), None)
    assert project.counts(batch, replace(movement, heads=frozenset({"look", "idle"}), parts={}))["idle"] == 0


def scored(off: frozenset[str], *, model_knows: frozenset[str] = frozenset(CONTROL_NAMES)) -> Any:
    """The score of predictions that are right for what the model knows and press everything else all the time."""
    session = random_session("a", 400, 9)
    masks, targets = frame_masks(session.controls, session.state), session.controls
    known = np.array([name in model_knows for name in CONTROL_NAMES])
    guess = np.where(known, targets, 1.0).astype(np.float32)
    prediction = Prediction(**{head: guess[:, columns] for head, columns in HEADS.items()})
    previous = np.concatenate([np.zeros_like(targets[:1]), targets[:-1]])
    return score_controls(prediction, Truth(targets, previous, masks), off=off)


def test_a_stage_is_scored_by_what_it_trains() -> None:
    movement = frozenset({*MOVEMENT, "look_yaw", "look_pitch"})
    everything_else = frozenset(CONTROL_NAMES) - movement
    whole, stage = scored(frozenset(), model_knows=movement), scored(everything_else, model_knows=movement)
    assert whole.score < 0.8
    assert whole.values["idle_accuracy"] == 0
    assert stage.score == 1
    assert {key for key, value in stage.values.items() if value is None} == {
        "hotbar_accuracy", "cursor_mse", "cursor_pixels", "inv_f1", "inv_change_f1",
    }  # fmt: skip
    assert stage.values["action_f1"] == stage.values["idle_accuracy"] == 1
    f1 = {control.name: control.f1 for control in stage.controls}
    assert [f1[CONTROL_NAMES[column]] is None for column in ACTION] == [False] * 7 + [True] * 5
    assert all(f1[CONTROL_NAMES[column]] is None for column in INV)
    half = scored(everything_else, model_knows=movement - {"sprint"})
    lost = 1 - half.values["action_f1"]
    assert lost > 0.05
    judged = SCORE_WEIGHTS["action_f1"] + SCORE_WEIGHTS["look"] + SCORE_WEIGHTS["idle"]
    expected = SCORE_WEIGHTS["action_f1"] * lost + SCORE_WEIGHTS["idle"] * (1 - half.values["idle_accuracy"])
    assert 1 - half.score == pytest.approx(expected / judged)


THREE = (
    *TINY, "training.epochs=5", "training.steps_per_epoch=6", "training.batch_size=16", "training.warmup_epochs=1",
    "training.stages.0.epochs=1", "training.stages.1.epochs=2", "training.checkpoint_minutes=0.002",
    "training.weight_decay=0.5", "output.keep_epochs=1",
)  # fmt: skip


@pytest.mark.behaviour("learning-rate-early-stopping")
def test_killed_in_the_second_stage_equals_uninterrupted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))

    def new_run() -> LiveRun:
        return LiveRun(launch.prepare_training(CURRICULUM, [f"data.path={folder}", *THREE]))

    straight, killed = new_run(), new_run()
    killed.killed_here(14, WindowSource)
    assert killed.resume_here() == straight.here() == "finished", killed.log() + straight.log()
    killed.reader.poll()
    assert len(killed.reader.history.resumes) == 1
    assert 6 <= killed.reader.history.resumes[0] <= 14
    rows = effective_table(killed.run)
    assert rows == effective_table(straight.run)
    assert [row["stage"] for row in rows] == ["movement", "combat", "combat", "inventory", "inventory"]
    assert [row["train"]["inv"] is None for row in rows] == [True] * 3 + [False] * 2
    assert [row["validation"]["cursor_mse"] is None for row in rows] == [True] * 3 + [False] * 2
    ours, theirs = tensors(killed.run.last), tensors(straight.run.last)
    assert ours.keys() == theirs.keys()
    assert [place for place in ours if not torch.equal(ours[place], theirs[place])] == []
    one, three, five = (tensors(straight.run.checkpoints / f"epoch_00{epoch}.pt") for epoch in (1, 3, 5))
    for place in (place for place in one if place.startswith("/model/") and place.endswith("weight")):
        off = place.split("/")[2].split(".")[0] in ("hotbar", "cursor", "inv")
        assert torch.equal(one[place], three[place]) == off, f"{place}: weight decay moves what is off"
        assert not torch.equal(three[place], five[place]), place
    started = killed.reader.history.started
    assert started is not None
    assert [(column.title, column.format) for column in started.columns][:2] == [("Ep", "d"), ("Stage", "9s")]
    assert [(stage.name, stage.first_epoch, stage.last_epoch) for stage in started.stages] == [
        ("movement", 1, 1), ("combat", 2, 3), ("inventory", 4, 5),
    ]  # fmt: skip


def test_every_head_owns_the_parameters_it_names(folder: Path) -> None:
    cfg, _, _ = stages(folder)
    project = ControlsProject()
    model: nn.Module = project.model(cfg, project.data(cfg, torch.device("cpu")))
    project.freeze(model, [pattern for head in SPEC.heads for pattern in head.patterns])
    trained = {name.split(".")[0] for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert trained == {"project", "filter", "encoder", "decay"}
