"""An optimizer of the project's own, which knows nothing of steps that are left out."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from engines.training import checkpoint, engine
from tests.engines.conftest import tensors
from tests.engines.test_step import SyncSpy
from tests.engines.toy import ToyConfig, ToyProject, ToyRun


class WithSgd(ToyProject):
    def optimizer(self, groups: list[dict[str, Any]], cfg: ToyConfig) -> torch.optim.Optimizer:
        return torch.optim.SGD(groups, lr=cfg.training.lr, momentum=0.9, foreach=False)


class WithNAdam(ToyProject):
    def optimizer(self, groups: list[dict[str, Any]], cfg: ToyConfig) -> torch.optim.Optimizer:
        return torch.optim.NAdam(groups, lr=cfg.training.lr)


def stepped(toy: ToyRun, places: list[int], bad: frozenset[int] = frozenset()) -> None:
    """Do steps by hand; the input of the `bad` ones is not a number."""
    for number, place in enumerate(places):
        batch = toy.data.train.batch(toy.trainer.schedule.order.indices(0, place), None)
        if number in bad:
            batch["x"] = batch["x"] * torch.nan
        torch.manual_seed(place)
        toy.trainer.step(batch, toy.trainer.schedule.context(), 1e-2)


def test_it_is_the_one_that_steps(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, WithSgd(), grad_clip=1e9)
    before = copy.deepcopy(toy.model)
    stepped(toy, [0])
    torch.manual_seed(0)
    batch = toy.data.train.batch(toy.trainer.schedule.order.indices(0, 0), None)
    losses = toy.project.losses(before, batch, toy.trainer.schedule.context())
    (losses["all"].total / 32 + 0.5 * losses["rare"].total / losses["rare"].count).backward()  # type: ignore[no-untyped-call]
    for now, then in zip(toy.model.parameters(), before.parameters(), strict=True):
        assert then.grad is not None
        decay = 1e-4 if then.ndim > 1 else 0.0
        torch.testing.assert_close(now, then - 1e-2 * (then.grad + decay * then))


@pytest.mark.parametrize("project", [WithSgd, WithNAdam])
@pytest.mark.parametrize("bad", [0, 2])
def test_a_bad_step_leaves_its_weights_and_its_state(tmp_path: Path, project: type[ToyProject], bad: int) -> None:
    """Also the very first one, before there is any state."""
    toy, plain = ToyRun(tmp_path / "bad", project()), ToyRun(tmp_path / "plain", project())
    stepped(toy, [*range(bad), 7, *range(bad, 5)], frozenset([bad]))
    stepped(plain, list(range(5)))
    ours, theirs = (run.trainer.checkpoints.content() for run in (toy, plain))
    assert checkpoint.same(ours["model"], theirs["model"])
    assert checkpoint.same(ours["optimizer"], theirs["optimizer"])


def test_no_step_of_it_waits_for_the_device(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, WithSgd())
    stepped(toy, [0, 1])
    batch = toy.data.train.batch(toy.trainer.schedule.order.indices(0, 2), None)
    ctx = toy.trainer.schedule.context()
    with SyncSpy() as spy:
        toy.trainer.step(batch, ctx, 1e-2)
    assert spy.seen == []


def test_its_state_is_in_the_checkpoint(tmp_path: Path) -> None:
    whole, half = ToyRun(tmp_path / "whole", WithSgd(), epochs=2), ToyRun(tmp_path / "half", WithSgd(), epochs=2)
    whole.train()
    half.trainer.project.after_step = stop_at(half, 9)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        half.train()
    again = ToyRun(tmp_path / "half", WithSgd(), epochs=2, attempt=2)
    engine.resume(again.run, again.trainer)
    assert again.trainer.state.step == 8
    again.listener.step = lambda: again.trainer.state.step
    with again.listener:
        assert again.trainer.train() == "finished"
    ours, theirs = tensors(whole.run.last), tensors(again.run.last)
    assert any("momentum" in place for place in ours)
    assert all(torch.equal(ours[place], theirs[place]) for place in ours)


def stop_at(toy: ToyRun, step: int) -> Any:
    def after_step(model: nn.Module, ctx: Any) -> None:
        if ctx.step == step:
            raise KeyboardInterrupt

    return after_step
