"""How a stage begins: with the last weights or the best, its project's own work once, its own sizes and rates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engines.contract import commands as cmd
from engines.contract.settings import Training
from engines.contract.spec import Head
from engines.contract.steps import read_series
from engines.runs.saved import read_saved
from engines.thresholds.review import read_review
from engines.training import checkpoint, engine
from engines.training.finish import stages_table
from engines.training.project import Batch, Context, Loss, Project, Result, Split
from engines.training.stages import StagePlan
from tests.engines.conftest import effective_table, tensors
from tests.engines.test_stages import epochs_of
from tests.engines.toy import ToyConfig, ToyEvaluation, ToyProject, ToyRun, send

SCORES = [0.1, 0.9, 0.2, 0.3, 0.8, 0.4]
"""Of each epoch: the second is the best of the first three, the fifth of the last three."""
STAGES = [{"name": "a", "epochs": 3}, {"name": "b", "begin": "best"}]


class Scored(ToyEvaluation):
    def add(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        self.epoch = ctx.epoch
        return super().add(model, batch, ctx)

    def result(self) -> Result:
        found = super().result()
        return Result(found.values, SCORES[self.epoch], found.review)


class Renewing(ToyProject):
    """A new row of the last layer as each stage begins, drawn from torch's own generator."""

    def __init__(self, killed_in: str = "") -> None:
        super().__init__()
        self.begun: list[tuple[str, int, dict[str, Tensor]]] = []
        self.killed_in = killed_in

    def evaluation(self, cfg: ToyConfig, data: Split) -> ToyEvaluation:
        return Scored(self)

    def begin_stage(self, model: nn.Module, ctx: Context) -> None:
        weights = {name: value.clone() for name, value in model.state_dict().items()}
        self.begun.append((ctx.stage, ctx.step, weights))
        model.get_parameter("3.weight")[1].normal_()
        if ctx.stage == self.killed_in:
            raise KeyboardInterrupt


def resumed(folder: Path, project: ToyProject, **training: Any) -> ToyRun:
    toy = ToyRun(folder, project, attempt=2, **training)
    engine.resume(toy.run, toy.trainer)
    toy.listener.step = lambda: toy.trainer.state.step
    toy._random = torch.get_rng_state()
    return toy


def assert_same_end(one: ToyRun, other: ToyRun) -> None:
    ours, theirs = tensors(one.run.last), tensors(other.run.last)
    assert ours.keys() == theirs.keys()
    assert [place for place in ours if not torch.equal(ours[place], theirs[place])] == []
    assert effective_table(one.run) == effective_table(other.run)


@pytest.mark.parametrize(("begin", "epoch"), [("last", 3), ("best", 2)])
def test_a_stage_begins_with_the_last_or_the_best_of_the_one_before(tmp_path: Path, begin: str, epoch: int) -> None:
    project = Renewing()
    stages = [STAGES[0], {"name": "b", "begin": begin}]
    toy = ToyRun(tmp_path, project, epochs=6, stages=stages)
    toy.settings.output.keep_epochs = 1
    moments: list[Any] = []
    begin_stage = toy.trainer._begin_stage

    def noting() -> None:
        state = toy.trainer.step.optimizer.state_dict()["state"]
        moments.append({place: {k: v.clone() for k, v in each.items()} for place, each in state.items()})
        begin_stage()

    toy.trainer._begin_stage = noting  # type: ignore[method-assign]
    assert toy.train() == "finished"
    assert [(stage, step) for stage, step, _ in project.begun] == [("a", 0), ("b", 24)]
    then = checkpoint.load(toy.run.checkpoints / f"epoch_{epoch:03d}.pt")
    assert checkpoint.same(project.begun[1][2], dict(then["model"]))
    assert checkpoint.same(moments[1], then["optimizer"]["state"])


def test_the_best_of_each_stage_is_kept_with_its_review(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, Renewing(), epochs=6, stages=STAGES)
    toy.train()
    assert read_saved(toy.run.stage_best(1)).epoch == 2
    assert read_saved(toy.run.best).epoch == 5
    assert not toy.run.stage_best(2).exists(), "the last stage's best is best.pt"
    first, last = read_review(toy.run.stage_review(1)), read_review(toy.run.review)
    assert first is not None
    assert last is not None
    assert (first.about.epoch, last.about.epoch) == (2, 5)
    assert first.arrays["errors"].tolist() != last.arrays["errors"].tolist()
    assert stages_table(toy.trainer).rows == (
        (1, "a", "1–3", 2, 0.9, "stage_1_best.pt"),
        (2, "b", "4–6", 5, 0.8, "best.pt"),
    )
    plain = ToyRun(tmp_path / "plain", Renewing(), epochs=2)
    plain.train()
    assert plain.run.stage_bests() == {}


@pytest.mark.parametrize("killed_in", ["a", "b"])
def test_what_a_stage_begins_with_is_done_once_in_the_weights(tmp_path: Path, killed_in: str) -> None:
    """Killed right after it, before any save: the resumed run has the weights of one to which nothing happened."""
    straight = ToyRun(tmp_path / "straight", Renewing(), epochs=6, stages=STAGES)
    assert straight.train() == "finished"
    killed = ToyRun(tmp_path / "killed", Renewing(killed_in), epochs=6, stages=STAGES)
    with pytest.raises(KeyboardInterrupt):
        killed.train()
    project = Renewing()
    if killed_in == "a":  # before any checkpoint: all of it begins again
        again = ToyRun(tmp_path / "killed", project, attempt=2, epochs=6, stages=STAGES)
    else:
        again = resumed(tmp_path / "killed", project, epochs=6, stages=STAGES)
    assert again.train() == "finished"
    assert [stage for stage, _, _ in project.begun] == (["a", "b"] if killed_in == "a" else ["b"])
    assert_same_end(straight, again)


def test_a_resume_inside_a_stage_does_not_begin_it_again(tmp_path: Path) -> None:
    straight = ToyRun(tmp_path / "straight", Renewing(), epochs=6, stages=STAGES)
    straight.train()
    stopped = ToyRun(tmp_path / "stopped", Renewing(), epochs=6, stages=STAGES)
    send(stopped, cmd.SaveCheckpoint(attempt=1, at_step=28))
    stopped.project.after_step = killed_at(30)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        stopped.train()
    project = Renewing()
    again = resumed(tmp_path / "stopped", project, epochs=6, stages=STAGES)
    assert again.trainer.state.step == 28
    assert again.train() == "finished"
    assert project.begun == []
    assert_same_end(straight, again)


def killed_at(step: int) -> Any:
    def after_step(model: nn.Module, ctx: Context) -> None:
        if ctx.step == step:
            raise KeyboardInterrupt

    return after_step


def test_a_kill_between_the_names_of_a_checkpoint_loses_no_best(tmp_path: Path) -> None:
    """last.pt is the second epoch, the best; best.pt is the first still."""
    straight = ToyRun(tmp_path / "straight", Renewing(), epochs=6, stages=STAGES)
    straight.train()
    killed = ToyRun(tmp_path / "killed", Renewing(), epochs=6, stages=STAGES)
    killed.project.after_step = killed_at(16)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        killed.train()
    content = checkpoint.load(killed.run.best)
    killed.run.best.unlink()
    torch.save({**content, "state": {**content["state"], "epoch": 1}}, killed.run.best)
    again = resumed(tmp_path / "killed", Renewing(), epochs=6, stages=STAGES)
    assert read_saved(killed.run.best).epoch == 2
    assert again.train() == "finished"
    assert_same_end(straight, again)


def test_without_its_best_a_stage_begins_with_the_last_and_says_so(tmp_path: Path) -> None:
    project = Renewing()
    toy = ToyRun(tmp_path, project, epochs=4, stages=STAGES)
    end_epoch = toy.trainer.records.end_epoch

    def losing(state: Any, *rest: Any, **more: Any) -> Any:
        if state.epoch == 3:
            toy.trainer.checkpoints.settle()  # else the best of epoch 2 may be written after this
            toy.run.best.unlink()
        return end_epoch(state, *rest, **more)

    toy.trainer.records.end_epoch = losing  # type: ignore[method-assign]
    assert toy.train() == "finished"
    assert "the stage starts with the last weights: the previous stage's best is missing" in (
        toy.run.events.read_text()
    )


def test_the_first_stage_cannot_begin_with_the_best_of_another() -> None:
    with pytest.raises(ValueError, match="the first stage cannot start"):
        Training.model_validate({"stages": [{"name": "a", "begin": "best"}]})


class Rated(ToyProject):
    def param_groups(self, model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
        first, last = (list(model.get_submodule(name).parameters()) for name in ("0", "3"))
        return [{"params": first, "lr_scale": {"b": 0.25, "another config's": 7.0}}, {"params": last, "lr_scale": 2.0}]


def test_a_stage_has_its_own_batch_epoch_clip_and_rates(tmp_path: Path) -> None:
    stages = [
        {"name": "a", "epochs": 1},
        {"name": "b", "epochs": 1, "batch_size": 8, "steps_per_epoch": 5, "grad_clip": 1e-3},
        {"name": "c", "epochs": 1, "batch_size": 64},
    ]
    project = Rated()
    sizes: list[int] = []
    toy = ToyRun(tmp_path, project, epochs=3, stages=stages, warmup_epochs=0, min_lr=1e-2)
    step = toy.trainer.step
    rates: list[tuple[float, float]] = []

    def noting(model: nn.Module, ctx: Context) -> None:
        one, other = (group["lr"] for group in step.optimizer.param_groups)
        rates.append((one, other))

    project.after_step = noting  # type: ignore[method-assign]
    add = toy.trainer.step_log.add

    def counting(row: Tensor, **about: Any) -> None:
        sizes.append(int(row[0]))  # samples of the head that counts in each
        add(row, **about)

    toy.trainer.step_log.add = counting  # type: ignore[method-assign]
    clips: list[float] = []
    clip = nn.utils.clip_grad_norm_

    def clipped(parameters: Any, most: float) -> Any:
        clips.append(most)
        return clip(parameters, most)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nn.utils, "clip_grad_norm_", clipped)
        assert toy.train() == "finished"
    assert sizes == [32] * 8 + [8] * 5 + [64] * 4
    assert clips == [1.0] * 8 + [1e-3] * 5 + [1.0] * 4
    assert rates == pytest.approx([(1e-2, 2e-2)] * 8 + [(2.5e-3, 2e-2)] * 5 + [(1e-2, 2e-2)] * 4)
    assert [row["step"] for row in epochs_of(toy)] == [8, 13, 17]
    assert len(read_series(toy.run.steps, "loss")[0]) == 17


def test_a_stages_batch_is_cut_into_whole_micro_batches() -> None:
    with pytest.raises(ValueError, match="batch_size 9 must be a multiple of micro_batches 2"):
        Training.model_validate({"micro_batches": 2, "stages": [{"name": "a", "batch_size": 9}]})


class Shared(nn.Module):
    """A trunk of two layers, and a readout for each head."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8))
        self.one, self.two, self.three = (nn.Linear(8, 1) for _ in range(3))


HEADS = (
    Head(name="one", title="", parameters=("one.*", "trunk.*")),
    Head(name="two", title="", parameters=("two.*", "trunk.0.*")),
    Head(name="three", title="", parameters="three.*"),
)


@pytest.mark.parametrize(
    ("heads", "trained"),
    [
        (["one"], {"one", "trunk.0", "trunk.2"}),
        (["two"], {"two", "trunk.0"}),
        (["three"], {"three"}),
        (["two", "three"], {"two", "three", "trunk.0"}),
        (["one", "two", "three"], {"one", "two", "three", "trunk.0", "trunk.2"}),
    ],
)
def test_what_heads_share_is_frozen_only_where_none_that_is_on_names_it(heads: list[str], trained: set[str]) -> None:
    model: nn.Module = Shared()
    plan = StagePlan(Training.model_validate({"stages": [{"name": "x", "heads": heads}]}), HEADS)
    project: Project[Any] = ToyProject()
    plan.rehearse(project, model)
    found = {name.rpartition(".")[0] for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert found == trained
