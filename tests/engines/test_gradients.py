"""Gradients of each head on what heads share: as autograd says them head by head, and without a trace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engines.contract import commands as cmd
from engines.contract.events import GradientNorms
from engines.runs.state import RunReader
from engines.training.project import Batch, Context, Loss, Split
from tests.engines.conftest import tensors
from tests.engines.toy import ToyConfig, ToyProject, ToyRun, events_of, final_answers, send


class TwoHeads(nn.Module):
    """A trunk with batch norm and dropout, and a layer of its own for each head."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.2))
        self.all, self.rare = nn.Linear(8, 1), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.trunk(x)
        return torch.cat([self.all(hidden), self.rare(hidden)], 1)


class Branched(ToyProject):
    def model(self, cfg: ToyConfig, data: Split) -> nn.Module:
        return TwoHeads()


class WithoutDropout(Branched):
    def model(self, cfg: ToyConfig, data: Split) -> nn.Module:
        model = TwoHeads()
        model.trunk[3] = nn.Identity()
        return model


def measured(toy: ToyRun) -> GradientNorms:
    reader = RunReader(toy.run)
    reader.poll()
    assert reader.history.gradients is not None
    return reader.history.gradients


def test_the_norms_are_those_of_each_head_on_the_trunk_alone(tmp_path: Path) -> None:
    """Told apart from the code by a model of its own for each head, and `backward` on the trunk's parameters."""
    toy = ToyRun(tmp_path, WithoutDropout())
    toy.trainer.measure_gradients()
    batch = toy.data.train.batch(toy.trainer.schedule.order.indices(0, 0), _noise(toy))
    event = measured(toy)
    for column, head in enumerate(("all", "rare")):
        toy.model.zero_grad()
        said = toy.model(batch["x"])[:, column : column + 1]
        error = F.mse_loss(said, batch["y"], reduction="none")[:, 0]
        wanted = torch.ones_like(batch["rare"]) if head == "all" else batch["rare"]
        ((error * wanted).sum() / wanted.sum()).backward()  # type: ignore[no-untyped-call]
        pulled = [p.grad for name, p in toy.model.named_parameters() if name.startswith("trunk.")]
        squares = sum(float(gradient.square().sum()) for gradient in pulled if gradient is not None)
        assert event.norms[head] == pytest.approx(squares**0.5, rel=1e-5)
    assert event.parameters == 5 * 8 + 8 + 8 + 8
    assert event.step == 0


def _noise(toy: ToyRun) -> Any:
    from engines.training.order import step_generator

    return step_generator(toy.settings.training.seed, 0, 0)


@pytest.mark.parametrize("settings", [{}, {"micro_batches": 2}], ids=["whole", "micro"])
def test_a_run_that_was_measured_is_bit_equal_to_one_that_was_not(tmp_path: Path, settings: dict[str, Any]) -> None:
    asked, plain = (ToyRun(tmp_path / name, Branched(), **settings) for name in ("asked", "plain"))
    send(asked, *(cmd.MeasureGradients(attempt=1, at_step=step) for step in (0, 3, 8, 8, 23, 24)))
    asked.train()
    plain.train()
    assert [state for [(state, _, _)] in final_answers(asked).values()] == ["applied"] * 6
    assert [event["step"] for event in events_of(asked, "gradients")] == [0, 3, 8, 8, 23, 24]
    ours, theirs = tensors(asked.run.last), tensors(plain.run.last)
    assert ours.keys() == theirs.keys()
    assert any("running_mean" in name for name in ours)
    for name, value in ours.items():
        assert torch.equal(value, theirs[name]), name


def test_what_cannot_be_measured_is_refused_and_the_run_goes_on(tmp_path: Path) -> None:
    class Full(ToyProject):
        full = False

        def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
            if self.full:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nand more")
            return super().losses(model, batch, ctx)

    project = Full()
    toy = ToyRun(tmp_path, project, epochs=1)
    measure = toy.trainer.measure_gradients

    def full() -> None:
        project.full = True
        try:
            measure()
        finally:
            project.full = False

    toy.trainer.measure_gradients = full  # type: ignore[assignment]
    command = cmd.MeasureGradients(attempt=1, at_step=2)
    send(toy, command)
    assert toy.train() == "finished"
    [(state, step, reason)] = final_answers(toy)[command.id]
    assert (state, step) == ("refused", 2)
    assert reason == "the gradients could not be measured: CUDA out of memory. Tried to allocate 2 GiB"


def test_a_gradient_that_is_not_finite_is_said_to_be_so(tmp_path: Path) -> None:
    project = ToyProject()
    toy = ToyRun(tmp_path, project)
    project.poison_from = 0
    toy.trainer.measure_gradients()
    [line] = events_of(toy, "gradients")
    assert line["norms"] == {"all": None, "rare": None}
    assert line["nonfinite"] == ["all", "rare"]
    msgspec.convert(line, GradientNorms)
