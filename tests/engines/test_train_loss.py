"""The training loss of an epoch is the weighted sum of the columns beside it; older runs keep the one they have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from torch import nn

from engines.compare import compare
from engines.contract import commands as cmd
from engines.contract.steps import read_series
from engines.runs import launch
from engines.runs.fork import prepare_fork
from engines.training.project import Batch, Context, Loss
from tests.engines.conftest import LiveRun, effective_table
from tests.engines.test_replay import NewRun, replayed
from tests.engines.test_stages import epochs_of
from tests.engines.toy import ToyProject, ToyRun

STEPS = 64
"""In an epoch of the toy project, with four samples in each."""
HEADS = ("all", "rare")


class Noted(ToyProject):
    """Keeps the total and the count of each head in every piece of a batch that was trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[dict[str, tuple[float, float]]] = []

    def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        losses = super().losses(model, batch, ctx)
        if model.training:
            self.pieces.append({head: (float(loss.total.detach()), float(loss.count)) for head, loss in losses.items()})
        return losses

    def pooled(self, epoch: int, head: str) -> float:
        """Its mean over the elements of an epoch, from 0, of batches in two pieces."""
        pieces = self.pieces[2 * STEPS * epoch : 2 * STEPS * (epoch + 1)]
        return sum(piece[head][0] for piece in pieces) / sum(piece[head][1] for piece in pieces)


@pytest.mark.behaviour("training-loss-epoch-weighted")
def test_it_is_the_weighted_sum_of_the_columns(tmp_path: Path) -> None:
    """A head that most steps have no element of, micro-batches, and an edit in the middle of the second epoch."""
    project = Noted()
    toy = ToyRun(tmp_path, project, epochs=3, batch_size=4, micro_batches=2)
    launch.send(toy.run, cmd.SetLossWeights(attempt=1, at_step=STEPS + 30, weights={"all": 0.25, "rare": 3.0}))
    assert toy.train() == "finished"
    assert len(read_series(toy.run.steps, "rare")[0]) < 3 * STEPS / 2
    rows = epochs_of(toy)
    assert [row["weights"] for row in rows] == [{"all": 1.0, "rare": 0.5}, *[{"all": 0.25, "rare": 3.0}] * 2]
    for epoch, row in enumerate(rows):
        train, weights = row["train"], row["weights"]
        assert {head: train[head] for head in HEADS} == pytest.approx(
            {head: project.pooled(epoch, head) for head in HEADS}, rel=1e-6
        )
        assert train["loss"] == pytest.approx(sum(weights[head] * train[head] for head in HEADS), abs=1e-6)
    assert rows[2]["train"]["loss"] != pytest.approx(mean_of_steps(toy.run, 2, STEPS), rel=0.05)


def mean_of_steps(run: Any, epoch: int, steps: int) -> float:
    values = read_series(run.steps, "loss")[1][steps * epoch : steps * (epoch + 1)]
    assert len(values) == steps
    return float(values.mean())


@pytest.fixture
def edited(new_run: NewRun) -> LiveRun:
    """A run of two epochs of six steps, not yet started, with an edit in its second one."""
    live = new_run("training.batch_size=16", "training.epochs=2", "training.stages=[]", "training.steps_per_epoch=6")
    live.send(cmd.SetLossWeights(attempt=1, at_step=9, weights={"radius": 2.0}))
    return live


def loss_of(live: LiveRun) -> tuple[float, float]:
    """Of the second epoch: as recorded, and the weighted sum of the columns beside it."""
    row = effective_table(live.run)[1]
    columns = sum(weight * row["train"][head] for head, weight in row["weights"].items())
    return row["train"]["loss"], columns


@pytest.mark.behaviour("training-loss-epoch-weighted")
def test_an_older_run_and_its_replay_keep_the_mean_of_the_steps(edited: LiveRun) -> None:
    """Its record says nothing of it. A fork of it is a new run."""
    info = msgspec.json.decode(edited.run.info_file.read_bytes())
    assert info.pop("train_loss") == "pooled"
    edited.run.info_file.write_bytes(msgspec.json.encode(info))
    edited.killed_here(8)
    assert edited.resume_here() == "finished", edited.log()
    loss, columns = loss_of(edited)
    assert loss == pytest.approx(mean_of_steps(edited.run, 1, 6), rel=1e-6)
    assert loss != pytest.approx(columns, rel=0.01)
    copy = replayed(edited)
    found = compare(edited.run, copy.run)
    assert (found["first_step"], found["first_epoch"], found["different"]) == (None, None, [])
    assert loss_of(copy) == (loss, columns)
    fork, _ = prepare_fork(edited.run, ["training.epochs=3"])
    assert fork.info.train_loss == "pooled"


def test_a_replay_of_a_new_run_has_the_weighted_sum_too(edited: LiveRun) -> None:
    assert edited.here() == "finished", edited.log()
    loss, columns = loss_of(edited)
    assert loss == pytest.approx(columns, abs=1e-6)
    assert loss != pytest.approx(mean_of_steps(edited.run, 1, 6), rel=0.01)
    copy = replayed(edited)
    assert compare(edited.run, copy.run)["first_epoch"] is None
    assert loss_of(copy) == (loss, columns)
