"""What an epoch leaves behind: a handful of appended lines, however long the run, and nothing not finite is lost."""

from __future__ import annotations

import math
import os
from pathlib import Path

import msgspec
import pytest

from engines.contract import events as ev
from engines.contract.rundir import RunDirectory
from engines.runtime.listener import CommandListener
from engines.runtime.room import Room
from engines.training.project import Result
from engines.training.records import EpochRecorder
from engines.training.state import LiveSettings, TrainState


def record(run: RunDirectory, epoch: int, *, loss: float = 0.5, score: float | None = 0.25) -> None:
    events = ev.EventWriter(run.events, attempt=1)
    state = TrainState(live=LiveSettings({"a": 1.0}, 1.0, 20_000), step=epoch * 10, epoch=epoch)
    result = Result(values={"f1": 0.125}, score=score)
    room = Room(run, events, CommandListener(run, 1, events))
    EpochRecorder(run, room).end_epoch(state, "train", {"loss": loss}, result, lr=1e-4, best=False)
    events.close()


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path / "run")
    run.make()
    return run


@pytest.mark.behaviour("epoch-10-000-writes")
def test_a_late_epoch_costs_what_an_early_one_does(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes written, not time: nothing that is there already is written again."""
    written: list[int] = []
    real = os.write

    def counting(file: int, data: bytes) -> int:
        written.append(len(data))
        return real(file, data)

    monkeypatch.setattr(os, "write", counting)
    record(run, 10)
    early = list(written)
    old = run.train_metrics.read_bytes()
    for file in (run.train_metrics, run.val_metrics, run.events):
        file.write_bytes(file.read_bytes() * 10_000)
    written.clear()
    record(run, 10_000)
    assert len(early) == len(written) == 3  # the event and a line in each of two files
    assert sum(written) - sum(early) < 40  # a few more digits
    assert run.train_metrics.read_bytes().startswith(old * 10_000)


@pytest.mark.behaviour("loss-value-score-finite")
def test_values_and_a_score_that_are_not_finite_are_named(run: RunDirectory) -> None:
    record(run, 1, loss=math.inf, score=math.nan)
    row = ev.decoder.decode(run.events.read_bytes())
    assert isinstance(row, ev.Epoch)
    assert (row.train, row.score) == ({"loss": None}, None)
    assert row.nonfinite == ["train.loss", "score"]
    assert msgspec.json.decode(run.val_metrics.read_bytes())["nonfinite"] == ["score"]


@pytest.mark.behaviour("loss-value-score-finite")
def test_an_epoch_that_was_not_scored_is_not_called_bad(run: RunDirectory) -> None:
    record(run, 1, score=None)
    row = ev.decoder.decode(run.events.read_bytes())
    assert isinstance(row, ev.Epoch)
    assert (row.score, row.nonfinite) == (None, [])
