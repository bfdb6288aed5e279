"""Metrics that are no losses, and losses with a scale, against plain torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from engines.basics.errors import UserError
from engines.contract import config
from engines.contract import spec as specs
from engines.contract.spec import Column, Head, Spec
from engines.contract.steps import read_series
from engines.runs.history import column_value
from engines.runs.state import RunReader
from engines.training import engine
from engines.training.project import Batch, Context, Loss, Split
from tests.engines.conftest import tensors
from tests.engines.test_gradients import measured
from tests.engines.test_stage_begin import killed_at
from tests.engines.test_stages import epochs_of
from tests.engines.test_step import SyncSpy
from tests.engines.toy import ToyConfig, ToyProject, ToyRun


class Measuring(ToyProject):
    """How far the first output is from nought, and the error of the few samples that are far away."""

    metrics: tuple[str, ...] = ("spread", "far")

    def model(self, cfg: ToyConfig, data: Split) -> nn.Module:
        return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2))

    def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        said = model(batch["x"])[:, 0]
        far = batch["x"][:, 0] > 1
        found = {
            **super().losses(model, batch, ctx),
            "spread": Loss(said.square().sum(), torch.ones_like(said).sum()),
            "far": Loss((said.abs() * far).sum(), far.sum()),
        }
        return found if ctx.step % 2 else {name: loss for name, loss in found.items() if name != "far"}


@pytest.mark.parametrize("parts", [1, 4])
def test_metrics_are_logged_as_means_and_train_nothing(tmp_path: Path, parts: int) -> None:
    plain = type("Plain", (Measuring,), {"metrics": ()})
    toy = ToyRun(tmp_path / "measured", Measuring(), epochs=2, micro_batches=parts)
    other = ToyRun(tmp_path / "plain", plain(), epochs=2, micro_batches=parts)
    before = [parameter.detach().clone() for parameter in toy.model.parameters()]
    first = toy.data.train.batch(*toy_draw(toy))
    assert toy.train() == other.train() == "finished"
    ours, theirs = ({k: v for k, v in tensors(one.run.last).items() if k != "/sums"} for one in (toy, other))
    assert all(torch.equal(ours[place], theirs[place]) for place in ours)
    for name in ("loss", "all", "grad_norm"):
        assert read_series(toy.run.steps, name)[1].tolist() == read_series(other.run.steps, name)[1].tolist()

    for parameter, value in zip(toy.model.parameters(), before, strict=True):
        parameter.data.copy_(value)
    with torch.no_grad():
        said = toy.model(first["x"])[:, 0]
    steps, spread = read_series(toy.run.steps, "spread")
    assert steps.tolist() == list(range(16))
    assert spread[0] == pytest.approx(float(said.square().mean()), rel=1e-5)
    assert read_series(toy.run.steps, "far")[0].tolist() == list(range(1, 16, 2))
    rows = epochs_of(toy)
    assert [row["train"]["spread"] for row in rows] == pytest.approx([spread[:8].mean(), spread[8:].mean()])
    assert "spread" not in rows[0]["weights"]
    assert set(epochs_of(other)[0]["train"]) == {"loss", "all", "rare"}


def toy_draw(toy: ToyRun) -> tuple[Tensor, np.random.Generator]:
    from engines.training.order import step_generator

    return toy.trainer.schedule.order.indices(0, 0), step_generator(toy.settings.training.seed, 0, 0)


def test_metrics_survive_a_resume_inside_an_epoch(tmp_path: Path) -> None:
    whole = ToyRun(tmp_path / "whole", Measuring(), epochs=1)
    whole.train()
    toy = ToyRun(tmp_path / "cut", Measuring(), epochs=1, checkpoint_minutes=1e-9)
    toy.project.after_step = killed_at(5)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        toy.train()
    again = ToyRun(tmp_path / "cut", Measuring(), attempt=2, epochs=1)
    engine.resume(again.run, again.trainer)
    assert again.trainer.state.step == 5
    with again.listener:
        again.trainer.train()
    assert epochs_of(again)[-1]["train"] == epochs_of(whole)[-1]["train"]


class Scaled(ToyProject):
    """The rare head's gradient is divided by the running RMS of its loss, which is a buffer of the model."""

    metrics: tuple[str, ...] = ("rare.scale",)
    factor = 0.0
    """A fixed scale where it is not 0."""

    def model(self, cfg: ToyConfig, data: Split) -> nn.Module:
        model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2))
        model.register_buffer("square", torch.ones(()))
        return model

    def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        losses = dict(super().losses(model, batch, ctx))
        rare = losses["rare"]
        if model.training:
            model.get_buffer("square").lerp_((rare.total / rare.count.clamp(min=1)).detach().square(), 0.1)
        scale = torch.tensor(self.factor) if self.factor else model.get_buffer("square").rsqrt()
        return losses | {"rare": Loss(rare.total, rare.count, scale)}


@pytest.mark.parametrize("parts", [1, 2])
def test_a_scale_is_on_the_gradient_alone(tmp_path: Path, parts: int) -> None:
    project = Scaled()
    project.factor = 3.0
    toy = ToyRun(tmp_path, project, micro_batches=parts)
    batch, ctx = toy.data.train.batch(torch.arange(32), None), toy.trainer.schedule.context()
    error = (toy.model(batch["x"]) - batch["y"]).square()
    everyone, rare = error[:, 0].mean(), error[batch["rare"], 1].mean()
    expected = torch.autograd.grad(everyone + 0.5 * 3 * rare, list(toy.model.parameters()), retain_graph=True)
    totals, counts, loss = toy.trainer.step._backward(batch, ctx)
    torch.testing.assert_close(loss, (everyone + 0.5 * rare).detach())
    torch.testing.assert_close((totals / counts)[:2], torch.stack([everyone, rare]).detach())
    assert float(totals[2] / counts[2]) == 3.0
    for parameter, gradient in zip(toy.model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def test_a_measured_gradient_is_the_scaled_one(tmp_path: Path) -> None:
    norms: list[Any] = []
    for factor in (1.0, 3.0):
        project = Scaled()
        project.factor = factor
        toy = ToyRun(tmp_path / str(factor), project)
        toy.trainer.measure_gradients()
        norms.append(measured(toy).norms)
    assert norms[1]["all"] == norms[0]["all"]
    assert norms[1]["rare"] == pytest.approx(3 * norms[0]["rare"])


def test_a_running_scale_is_charted_and_the_table_has_the_raw_loss(tmp_path: Path) -> None:
    toy = ToyRun(tmp_path, Scaled(), epochs=2, batch_size=64)
    assert toy.train() == "finished"
    _, raw = read_series(toy.run.steps, "rare")
    square, expected = 1.0, []
    for loss in raw:
        square += 0.1 * (loss**2 - square)
        expected.append(square**-0.5)
    _, scale = read_series(toy.run.steps, "rare.scale")
    assert scale == pytest.approx(expected, rel=1e-4)
    reader = RunReader(toy.run)
    reader.poll()
    row = reader.history.epochs[1]
    assert column_value("train.rare.scale", row) == pytest.approx(np.mean(expected[:4]), rel=1e-4)
    everyone, rare = read_series(toy.run.steps, "all")[1][:4].mean(), row.train["rare"]
    assert rare is not None
    assert raw[:4].min() < rare < raw[:4].max()
    assert row.train["loss"] == pytest.approx(everyone + 0.5 * rare, rel=1e-5)


def test_neither_waits_for_the_device(tmp_path: Path) -> None:
    class Both(Measuring, Scaled):
        metrics: tuple[str, ...] = ("spread", "far", "rare.scale")
        model = Scaled.model

    toy = ToyRun(tmp_path, Both())
    batch, ctx = toy.data.train.batch(torch.arange(32), None), toy.trainer.schedule.context()
    toy.trainer.step(batch, ctx, 1e-3)
    with SyncSpy() as spy:
        toy.trainer.step(batch, ctx, 1e-3)
    assert spy.seen == []


def test_a_scale_that_the_spec_does_not_announce_is_a_sentence(tmp_path: Path) -> None:
    unsaid = type("Unsaid", (Scaled,), {"metrics": ()})
    with pytest.raises(LookupError, match="the loss of rare has a scale, expected scaled=True in its Head"):
        ToyRun(tmp_path, unsaid()).train()


def spec_with(metrics: tuple[str, ...], *, scaled: bool = False) -> Spec:
    heads = (Head(name="all", title="All"), Head(name="rare", title="Rare", scaled=scaled))
    return Spec(
        name="toy", title="", config="tests.engines.toy:ToyConfig", project="tests.engines.toy:ToyProject",
        columns=(Column("Ep", "epoch"),), heads=heads, metrics=metrics,
    )  # fmt: skip


def test_a_spec_names_its_metrics_apart_from_all_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert spec_with(("kl",), scaled=True).measured == ("kl", "rare.scale")
    path = tmp_path / "c.yaml"
    path.write_text("project: toy\n")
    for metrics, sentence in ((("rare",), "a metric 'rare'"), (("kl", "kl"), "a metric 'kl'"), (("lr",), "'lr'")):
        monkeypatch.setattr(specs, "find", lambda name, metrics=metrics: spec_with(metrics))
        with pytest.raises(UserError, match=f"{sentence}, a name in use"):
            config.load_config(path)
