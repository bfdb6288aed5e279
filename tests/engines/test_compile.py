"""A compiled model: heads that are off are not touched, and every compile is a phase. Compiled ahead, run eagerly."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from engines.training.project import Batch, Context, Loss, Result, Split
from tests.engines.toy import ToyConfig, ToyEvaluation, ToyProject, ToyRun

STAGES = [{"name": "rare only", "epochs": 1, "heads": ["rare"]}, {"name": "both"}]


class TwoLayers(nn.Module):
    """A layer for each head, both computed whatever is on; the backward pass reads a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.everyone, self.rare = nn.Linear(5, 1), nn.Linear(5, 1)
        self.scale = nn.Buffer(torch.ones(1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.everyone(x) * self.scale, self.rare(x) * self.scale


class Separate(ToyProject):
    def model(self, cfg: ToyConfig, data: Split) -> nn.Module:
        return TwoLayers()

    def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        everyone, rare = model(batch["x"])
        counts = self.counts(batch, ctx)
        squared = F.mse_loss(rare, batch["y"], reduction="none")[:, 0]
        losses = {
            "all": Loss(F.mse_loss(everyone, batch["y"], reduction="sum"), counts["all"]),
            "rare": Loss((squared * batch["rare"]).sum(), counts["rare"]),
        }
        return {head: losses[head] for head in ctx.heads}

    def evaluation(self, cfg: ToyConfig, data: Split) -> ToyEvaluation:
        return LossesAlone(self)


class LossesAlone(ToyEvaluation):
    def add(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        return self._project.losses(model, batch, ctx)

    def result(self) -> Result:
        return Result(values={}, score=0.0)


@pytest.fixture
def compiled_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graphs of forward and backward as they are compiled, without a compiler of kernels."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))


@pytest.mark.usefixtures("compiled_ahead")
def test_a_head_that_is_off_is_not_decayed(tmp_path: Path) -> None:
    """A compiled backward gives it zeros, with which the optimizer would move its weights and make its moments."""
    toy = ToyRun(tmp_path, Separate(), compile=True, stages=STAGES, weight_decay=0.5)
    before = {name: value.clone() for name, value in toy.model.state_dict().items()}
    for place in range(2):
        batch = toy.data.train.batch(toy.trainer.schedule.order.indices(0, place), None)
        toy.trainer.step(batch, toy.trainer.schedule.context(), 1e-2)
    after = toy.model.state_dict()
    moved = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert moved == {"rare.weight", "rare.bias"}
    with_moments = {id(parameter) for parameter in toy.trainer.step.optimizer.state}
    assert with_moments == {id(parameter) for parameter in toy.model.rare.parameters()}  # type: ignore[union-attr]


@pytest.mark.usefixtures("compiled_ahead")
def test_every_stage_compiles_and_says_so(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, Separate(), compile=True, stages=STAGES, epochs=2, steps_per_epoch=3)
    plain = ToyRun(tmp_path / "plain", Separate(), stages=STAGES, epochs=2, steps_per_epoch=3)
    assert toy.train() == plain.train() == "finished"
    events = [msgspec.json.decode(line) for line in toy.run.events.read_bytes().splitlines()]
    phases = [(event["phase"], event["step"]) for event in events if event["type"] == "phase"]
    training = [phase for phase in phases if phase[0] in ("compiling", "training")]
    assert training[:2] == [("compiling", 0), ("training", 1)]
    assert ("compiling", 3) in training
    assert training[training.index(("compiling", 3)) + 1] == ("training", 4)
    for ours, theirs in zip(toy.model.parameters(), plain.model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)
