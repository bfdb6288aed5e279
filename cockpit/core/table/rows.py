"""Rows of the epoch table: its epochs, and between them, where an epoch takes long, rows of the steps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from cockpit.core.metrics.steps import Steps
from engines.contract.events import Epoch
from engines.contract.steps import logged
from engines.runs.history import History, column_value

LONG_EPOCH_SECONDS = 120.0
LEVELS = (0, 5, 10, 20, 50)
"""Rows of steps in an epoch, about."""
LONG_LEVEL = 2
"""Of `LEVELS`: what a run with long epochs has unless a person chose."""


@dataclass(frozen=True)
class StepRow:
    """Steps of an epoch up to `step`: the mean loss of those since the row before, the learning rate of the last."""

    step: int
    loss: float | None
    lr: float | None


Row = Epoch | StepRow


def row_value(source: str, row: Row) -> object:
    """What a column with this `source` shows of a row."""
    if isinstance(row, Epoch):
        return column_value(source, row)
    return {"step": row.step, "train.loss": row.loss, "lr": row.lr}.get(source)


def is_long(history: History, steps: Steps) -> bool:
    """Whether an epoch takes more than two minutes, by the last one, before that by the rate of the steps."""
    started = history.started
    if (newest := history.newest) is not None:
        return newest.seconds > LONG_EPOCH_SECONDS
    rate = steps.rate(history.stepping)
    return started is not None and rate is not None and started.steps_per_epoch / rate > LONG_EPOCH_SECONDS


def steps_between(steps_per_epoch: int, rows: int) -> int:
    """A round number of steps, 1, 2 or 5 times a power of ten, so that an epoch has about `rows` rows; 0 for none."""
    if rows == 0 or steps_per_epoch <= 0:
        return 0
    wanted = steps_per_epoch / rows
    power = 10 ** max(int(np.floor(np.log10(max(wanted, 1)))), 0)
    return int(next(times * power for times in (1, 2, 5, 10) if times * power >= wanted))


@dataclass
class TableRows:
    """Epochs with rows of steps before each and after the last; what did not change is not made again."""

    rows: list[Row] = field(default_factory=list)
    _epochs: list[Epoch] = field(default_factory=list)
    _places: list[int] = field(default_factory=list)
    """Of each epoch its place in `rows`."""
    _every: int = 0
    _newest: int = -1
    """The newest step that was there the last time."""

    def update(self, epochs: Sequence[Epoch], steps: Steps, every: int) -> int:
        """Take the epochs in force and a row every so many steps (0: none). Gives the first place that changed."""
        if every != self._every:
            self._epochs, self._places, self._every = [], [], every
        pairs = zip(self._epochs, epochs, strict=False)
        kept = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], pairs))
        if steps.newest > self._newest:  # an epoch may have been read before the last of its steps
            kept = min(kept, bisect_right(self._epochs, self._newest + 1, key=lambda epoch: epoch.step))
        self._newest = steps.newest
        del self._epochs[kept:], self._places[kept:]
        start = self._places[-1] + 1 if self._places else 0
        rows: list[Row] = []
        done = self._epochs[-1].step if self._epochs else 0
        for epoch in epochs[kept:]:
            rows += step_rows(steps, done, epoch.step, every)
            self._places.append(start + len(rows))
            rows.append(epoch)
            done = epoch.step
        rows += step_rows(steps, done, steps.newest + 1, every)
        self._epochs += epochs[kept:]
        old = self.rows[start:]
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, rows, strict=False)))
        self.rows[start:] = rows
        return start + same


def step_rows(steps: Steps, done: int, stop: int, every: int) -> list[StepRow]:
    """A row at each multiple of `every` beyond `done` steps and before `stop`, of steps that were logged."""
    if not every or not steps.table.size:
        return []
    number, loss, lr = (steps.column(name) for name in ("step", "loss", "lr"))
    made = []
    inside = number[slice(*np.searchsorted(number, (done, stop)))]
    for step in map(int, np.unique((inside // every + 1) * every)):  # the record of step n is n + 1 done
        first, last = np.searchsorted(number, (max(step - every, done), step))
        if step < stop:
            made.append(StepRow(step, _mean(loss[first:last]), _last(lr[first:last])))
    return made


def _mean(values: np.ndarray) -> float | None:
    told = values[logged(values)]
    return float(told.mean()) if told.size else None


def _last(values: np.ndarray) -> float | None:
    told = values[logged(values)]
    return float(told[-1]) if told.size else None
