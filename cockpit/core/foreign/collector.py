"""Gathers rows into series: one value a step in force, older branches kept aside.

Each metric goes by its own steps, for one log may count batches for one metric and epochs for another. A step that
goes back begins a new branch: from there on the old values are superseded and kept as `old`. The same step logged
again by the same metric counts with its later value.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence

import numpy as np

from cockpit.core.foreign.places import StepCounter
from cockpit.core.foreign.rows import Row, plausible
from cockpit.core.series import Floats, Series
from engines.contract.metric_names import is_training, is_validation

MOST_BRANCHES = 256
"""Kept of one metric; a log whose steps go to and fro all the time has no branches that mean anything."""


class _Places:
    """Where every row of the log stands, once for all metrics."""

    def __init__(self) -> None:
        self.step, self.epoch, self.time = array("d"), array("d"), array("d")

    def add(self, step: float, epoch: float, time: float) -> int:
        self.step.append(step)
        self.epoch.append(epoch)
        self.time.append(time)
        return len(self.step) - 1


class _Points:
    """One metric while it grows: its values and the rows they stand in."""

    def __init__(self, name: str, places: _Places) -> None:
        self.name = name
        self.old: list[tuple[Floats, Floats]] = []
        self.branches = 0
        self.repeated = 0
        """Values replaced by another one at the same step."""
        self._places = places
        self._rows = array("q")
        self._values = array("d")
        self._last_step = -math.inf
        self._again: list[tuple[int, float]] = []
        """What was said again of earlier places; it counts once something follows it there."""
        self._frozen: Series | None = None

    def add(self, row: int, step: float, value: float) -> None:
        if not step > self._last_step and self._rows:  # NaN compares false: without a step the epoch decides
            if self._says_again(row, value):
                self._again.append((row, value))
                return
            for earlier in self._again:  # a restart that began with the same values
                if self._by(row)[earlier[0]] < self._by(row)[row]:
                    self._put(*earlier)
            self._put(row, value)
        else:
            self._rows.append(row)
            self._values.append(value)
        self._again.clear()
        self._last_step = step
        self._frozen = None

    def _put(self, row: int, value: float) -> None:
        self._make_room(row, value)
        self._rows.append(row)
        self._values.append(value)

    def _by(self, row: int) -> array[float]:
        """What says which of two rows comes first: steps where both have one, else epochs."""
        steps = self._places.step
        return self._places.epoch if math.isnan(steps[row]) or math.isnan(steps[self._rows[-1]]) else steps

    def _first_from(self, place: float, by: array[float]) -> int:
        """Number of the first of the rows that are at `place` or after it; a row before any epoch comes first."""
        return bisect_left(self._rows, place, key=lambda row: -math.inf if math.isnan(by[row]) else by[row])

    def _says_again(self, row: int, value: float) -> bool:
        """Whether an earlier row at this place has the value already, as where a program ends with its best.

        That takes nothing back. Of a restart it is the beginning.
        """
        by = self._by(row)
        if not by[row] < by[self._rows[-1]]:
            return False
        at = self._first_from(by[row], by)
        return by[self._rows[at]] == by[row] and self._values[at] == value

    def _make_room(self, row: int, value: float) -> None:
        """Take away what a value in this row supersedes."""
        last, by = self._rows[-1], self._by(row)
        if by[row] == by[last]:
            again = self._values[-1]
            self.repeated += value != again and not (math.isnan(value) and math.isnan(again))
            self._cut(len(self._rows) - 1)
        elif by[row] < by[last]:
            first = self._first_from(by[row], by)
            self.branches += 1
            self.old.append((_taken(by, self._rows[first:]), _readonly(np.array(self._values[first:]))))
            del self.old[:-MOST_BRANCHES]
            self._cut(first)

    def _cut(self, length: int) -> None:
        del self._rows[length:]
        del self._values[length:]

    def series(self) -> Series:
        if self._frozen is None:
            places = self._places
            step, epoch, time = (_taken(column, self._rows) for column in (places.step, places.epoch, places.time))
            self._frozen = Series(self.name, step, epoch, time, _readonly(np.array(self._values)), tuple(self.old))
        return self._frozen


class Collector:
    """Every metric of one log."""

    def __init__(self) -> None:
        self._places = _Places()
        self._points: dict[str, _Points] = {}
        self._counters: dict[str, StepCounter] = {}
        self._unplaced = 0
        self._own_steps = False
        """Whether validation counts steps of its own."""

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if not row.values:
                continue
            step, epoch, time = map(plausible, (row.step, row.epoch, row.time))
            row = self._apart(row, step) if math.isnan(epoch) else row
            counter = self._counters.get(row.group) or self._counters.setdefault(row.group, StepCounter())
            step = counter.place(step, epoch, row.values.keys())
            if math.isnan(step) and math.isnan(epoch):  # no other place than its number
                step = float(self._unplaced)
                self._unplaced += 1
            number = self._places.add(step, epoch, time)
            for name, value in row.values.items():
                points = self._points.get(name) or self._points.setdefault(name, _Points(name, self._places))
                points.add(number, step, value)

    def _apart(self, row: Row, step: float) -> Row:
        """The row, of a group of its own where validation counts its own steps.

        That is so from the first row of validation on whose step is before training's, if it has names of both.
        """
        if row.group or not any(map(is_validation, row.values)) or any(map(is_training, row.values)):
            return row
        if not self._own_steps:
            counter = self._counters.get("")
            self._own_steps = counter is not None and step < counter.newest and not all(map(is_validation, row.values))
        if not self._own_steps:
            return row
        values = {name if is_validation(name) else f"val {name}": value for name, value in row.values.items()}
        return row._replace(values=values, group="val")

    def series(self) -> dict[str, Series]:
        """By name, in order of first appearance."""
        return {name: points.series() for name, points in self._points.items()}

    def problems(self) -> Sequence[str]:
        repeated = sum(points.repeated for points in self._points.values())
        dropped = sum(points.branches - len(points.old) for points in self._points.values())
        found = []
        if any(counter.joined for counter in self._counters.values()):
            found.append("Steps restart in every epoch: each epoch is placed after the one before.")
        if self._own_steps:
            found.append("Validation counts its own steps: metrics it shares with training are named `val …`.")
        if repeated:
            found.append(f"{repeated} values were logged twice at the same step; the later one counts.")
        if dropped:
            found.append(f"Steps go back so often that {dropped} old branches were dropped.")
        return found


def _taken(column: array[float], rows: array[int]) -> Floats:
    """The values of `column` in `rows`, which may be none: `(n,)`. The column is not copied: it is every metric's."""
    view = np.frombuffer(column) if rows else np.empty(0)
    return _readonly(view[np.array(rows, dtype=np.int64)])


def _readonly(values: Floats) -> Floats:
    values.setflags(write=False)
    return values
