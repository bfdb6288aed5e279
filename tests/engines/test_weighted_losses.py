"""Losses whose count is a sum of weights, far below 1 in a batch, against plain torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engines.contract.steps import read_series
from engines.training.gradients import gradient_norms
from engines.training.precision import Precision
from engines.training.project import Batch, Context, Loss, Split
from tests.engines.test_stages import epochs_of
from tests.engines.toy import ToyConfig, ToyProject, ToyRun


def importance(batch: Batch) -> Tensor:
    """A weight for each sample, (batch,), of a hundredth on average."""
    return 0.02 * torch.sigmoid(3 * batch["x"][:, 0])


class Weighted(ToyProject):
    def model(self, cfg: ToyConfig, data: Split) -> nn.Module:
        return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2))

    def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        error = (model(batch["x"]) - batch["y"]).square()
        counts = self.counts(batch, ctx)
        return {
            "all": Loss((error[:, 0] * importance(batch)).sum(), counts["all"]),
            "rare": Loss((error[:, 1] * importance(batch) * batch["rare"]).sum(), counts["rare"]),
        }

    def counts(self, batch: Batch, ctx: Context) -> Mapping[str, Tensor]:
        weight = importance(batch)
        return {"all": weight.sum(), "rare": (weight * batch["rare"]).sum()}


def plain_loss(model: nn.Module, batch: Batch) -> Any:
    """Written out: weighted means, the second one half as heavy."""
    error, weight = (model(batch["x"]) - batch["y"]).square(), importance(batch)
    rare = weight[batch["rare"]]
    return (error[:, 0] * weight).sum() / weight.sum() + 0.5 * (error[batch["rare"], 1] * rare).sum() / rare.sum()


def some_batch(toy: ToyRun) -> Batch:
    batch = toy.data.train.batch(toy.trainer.schedule.order.indices(0, 0), None)
    assert float(importance(batch).sum()) < 0.5
    assert int(batch["rare"].sum()) > 1
    return batch


@pytest.mark.parametrize("parts", [1, 4])
def test_the_gradient_is_that_of_the_weighted_mean(tmp_path: Path, parts: int) -> None:
    toy = ToyRun(tmp_path, Weighted(), micro_batches=parts)
    batch = some_batch(toy)
    expected = torch.autograd.grad(loss := plain_loss(toy.model, batch), list(toy.model.parameters()))
    _, _, found = toy.trainer.step._backward(batch, toy.trainer.schedule.context())
    torch.testing.assert_close(found, loss.detach())
    for parameter, gradient in zip(toy.model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


@pytest.mark.parametrize("parts", [1, 4])
def test_the_loss_is_the_sum_of_its_heads_in_steps_and_epochs(tmp_path: Path, parts: int) -> None:
    toy = ToyRun(tmp_path, Weighted(), epochs=1, micro_batches=parts, lr=1e-9)
    before = [parameter.detach().clone() for parameter in toy.model.parameters()]
    assert toy.train() == "finished"
    loss, everyone, rare = (read_series(toy.run.steps, name)[1] for name in ("loss", "all", "rare"))
    assert loss == pytest.approx(everyone + 0.5 * rare, rel=1e-5)
    for parameter, value in zip(toy.model.parameters(), before, strict=True):
        parameter.data.copy_(value)
    with torch.no_grad():
        whole = toy.data.train.batch(torch.arange(256), None)
        validation = toy.data.validation.batch(torch.arange(64), None)
        [row] = epochs_of(toy)
        assert row["train"]["all"] == pytest.approx(float(mean_error(toy.model, whole)), rel=0.01)  # with noise
        assert row["validation"]["all"] == pytest.approx(float(mean_error(toy.model, validation)), rel=1e-3)
        assert row["validation"]["loss"] == pytest.approx(float(plain_loss(toy.model, validation)), rel=1e-3)


def mean_error(model: nn.Module, batch: Batch) -> Any:
    error, weight = (model(batch["x"])[:, 0] - batch["y"][:, 0]).square(), importance(batch)
    return (error * weight).sum() / weight.sum()


def test_measured_gradients_are_of_the_weighted_means(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, Weighted())
    batch, ctx = some_batch(toy), toy.trainer.schedule.context()
    norms, _ = gradient_norms(
        toy.project, toy.model, batch, ctx, ["all", "rare"], Precision("off", torch.device("cpu"))
    )
    shared: list[Any] = [p for name, p in toy.model.named_parameters()]
    gradients = torch.autograd.grad(mean_error(toy.model, batch), shared)
    squares = sum(float(gradient.square().sum()) for gradient in gradients)
    assert norms["all"] == pytest.approx(squares**0.5, rel=1e-4)


def test_a_batch_without_any_weight_has_no_loss(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, Weighted())
    batch = some_batch(toy)
    batch["rare"] = torch.zeros_like(batch["rare"])
    row = toy.trainer.step(batch, toy.trainer.schedule.context(), 1e-3).tolist()
    counted, rare_counted, total, rare_total, loss, *_ = row
    assert rare_counted == rare_total == 0
    assert loss == pytest.approx(total / counted)
