"""Where a row of a log stands: the names by which logs tell steps, epochs and times, and what these say."""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Literal

Kind = Literal["step", "epoch", "time"]
NAMES: dict[Kind, tuple[str, ...]] = {
    "step": (
        "global_step", "trainer/global_step", "_step", "step", "total_timesteps", "time/total_timesteps",
        "timesteps_total", "num_updates", "current_steps", "iteration", "training_iteration", "iter", "steps",
    ),
    "epoch": ("epoch", "_epoch"),
    "time": ("time", "timestamp", "_timestamp", "wall_time"),
}  # fmt: skip
"""In lower case, `_` for a space. Of several in a row the first counts: what comes later counts something smaller."""
_RANKS = {name: (kind, rank) for kind, names in NAMES.items() for rank, name in enumerate(names)}
EARLIEST_TIME = 1e8
"""Unix seconds, 1973: a smaller `time` is a duration, and a metric like any other."""
LATEST_TIME = 1e11
"""Unix seconds, the year 5138: a larger number counts milliseconds, micro- or nanoseconds."""


@functools.lru_cache(4096)
def kind_and_rank(name: str) -> tuple[Kind, int] | None:
    """What a name says of its row's place, the lower rank the more reliably; None for a metric's."""
    return _RANKS.get(name.strip().lower().replace(" ", "_"))


def seconds(number: float) -> float:
    """A moment as Unix seconds, whatever fractions of them it counts."""
    while LATEST_TIME < number < math.inf:
        number /= 1000
    return number


def moment(text: str) -> float | None:
    """Unix seconds of a date and time as ISO 8601 writes them, in UTC where it names no zone; None of other words."""
    try:
        when = datetime.fromisoformat(text.strip())
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


class StepCounter:
    """Gives every row of a log a step on one line from its start to its end.

    Many loops count steps again in every epoch: their step goes back while the epoch goes forward, which no restart
    does. Such epochs are put one after another. A row without a step is where the log last was, if it ever had one.
    """

    def __init__(self) -> None:
        self.joined = 0
        """Epochs whose steps were put behind those of the one before."""
        self._bases: list[tuple[float, float]] = [(-math.inf, 0.0)]
        """From which epoch on what is added to the steps."""
        self._step = self._first = self._epoch = math.nan
        """As logged: the newest, and the first one in its epoch."""
        self._stride = 0.0
        """Between steps of an epoch; 0 as long as each had only one, which is then the number of its steps."""
        self._at = self._highest = -math.inf
        self._ends: list[tuple[float, float]] = []
        """Epochs of rows without steps, and where they were put."""
        self._loose = -math.inf
        """Where the newest row without step and epoch was put."""
        self._there: set[str] = set()
        """The metrics that have a value there."""

    @property
    def newest(self) -> float:
        """Where the log last was; minus infinity before it said so."""
        return self._at

    def place(self, step: float, epoch: float, names: Collection[str]) -> float:
        """The step of the next row, which has values of these metrics; NaN where nothing is known of it."""
        if math.isnan(step):
            if not math.isfinite(self._at):
                return math.nan
            return self._beside(names) if math.isnan(epoch) else self._fill(epoch)
        if not math.isnan(epoch):
            self._look(step, epoch)
        self._at = step + self._bases[-1][1]
        self._highest = max(self._highest, self._at)
        if self._at != self._loose:
            self._loose, self._there = self._at, set()
        self._there.update(names)
        return self._at

    def _fill(self, epoch: float) -> float:
        """Where the log last was, each epoch behind the one before; an epoch that comes again where it was."""
        again, at = bisect_left(self._ends, (epoch, -math.inf)), self._at
        if again < len(self._ends):
            at = min(at, self._ends[again][1])
            del self._ends[again:]
        if self._ends:
            at = max(at, self._ends[-1][1] + 1)
        self._ends.append((epoch, at))
        return at

    def _beside(self, names: Collection[str]) -> float:
        """Where the log last was; a step further on where one of the metrics has a value there already."""
        if not self._there.isdisjoint(names):
            self._loose, self._there = self._loose + 1, set()
        self._there.update(names)
        return self._loose

    def _look(self, step: float, epoch: float) -> None:
        """Note where an epoch's steps begin."""
        if epoch < self._epoch:  # a restart goes on with what was added when that epoch began
            del self._bases[max(1, bisect_left(self._bases, (epoch, math.inf))) :]
            self._highest = step + self._bases[-1][1]
        elif self._count_restarts(step, epoch):
            self._bases.append((epoch, self._highest + (self._stride or max(step, 1.0)) - step))
            self.joined += 1
        if epoch != self._epoch:
            self._first = step
        elif step > self._step:
            self._stride = step - self._step
        self._step, self._epoch = step, epoch

    def _count_restarts(self, step: float, epoch: float) -> bool:
        only = step == self._step == self._first and epoch >= self._epoch + 1  # epochs of one step, all called the same
        return epoch > self._epoch and (step < self._step or only)
