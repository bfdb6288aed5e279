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
from dataclasses import dataclass, field

import numpy as np

from cockpit.core.foreign.rows import Row
from cockpit.core.metric_series import Floats, Series

MOST_BRANCHES = 256
"""Kept of one metric; a log whose steps go to and fro all the time has no branches that mean anything."""


@dataclass
class _Points:
    """One metric while it grows."""

    name: str
    step: array[float] = field(default_factory=lambda: array("d"))
    epoch: array[float] = field(default_factory=lambda: array("d"))
    time: array[float] = field(default_factory=lambda: array("d"))
    value: array[float] = field(default_factory=lambda: array("d"))
    old: list[tuple[Floats, Floats]] = field(default_factory=list)
    branches: int = 0
    repeated: int = 0
    """Values replaced by another one at the same step."""
    series: Series | None = None
    """As asked for last, None after a change."""

    def add(self, row: Row, value: float) -> None:
        self.series = None
        if self.value:
            self._make_room(row, value)
        for column, number in ((self.step, row.step), (self.epoch, row.epoch), (self.time, row.time)):
            column.append(number)
        self.value.append(value)

    def _make_room(self, row: Row, value: float) -> None:
        """Take away what a point at the row's place supersedes."""
        key, column = row.step, self.step
        if math.isnan(key) or math.isnan(column[-1]):
            key, column = row.epoch, self.epoch
        if not key <= column[-1]:  # goes on; NaN compares false, so a log without places always does
            return
        if key == column[-1]:
            again = self.value[-1]
            self.repeated += value != again and not (math.isnan(value) and math.isnan(again))
            self._cut(len(self.value) - 1)
            return
        first = bisect_left(column, key)
        self.branches += 1
        places = self.step if not math.isnan(self.step[first]) else self.epoch
        self.old.append((_frozen(places[first:]), _frozen(self.value[first:])))
        del self.old[:-MOST_BRANCHES]
        self._cut(first)

    def _cut(self, length: int) -> None:
        for column in (self.step, self.epoch, self.time, self.value):
            del column[length:]

    def frozen(self) -> Series:
        if self.series is None:
            step, epoch, time, value = map(_frozen, (self.step, self.epoch, self.time, self.value))
            self.series = Series(self.name, step, epoch, time, value, tuple(self.old))
        return self.series


class Collector:
    """Every metric of one log."""

    def __init__(self) -> None:
        self._points: dict[str, _Points] = {}
        self._unplaced = 0

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if math.isnan(row.step) and math.isnan(row.epoch) and row.values:
                row = Row(row.values, step=float(self._unplaced), time=row.time)  # no other place than its number
                self._unplaced += 1
            for name, value in row.values.items():
                points = self._points.get(name) or self._points.setdefault(name, _Points(name))
                points.add(row, value)

    def series(self) -> dict[str, Series]:
        """By name, in order of first appearance."""
        return {name: points.frozen() for name, points in self._points.items()}

    def problems(self) -> Sequence[str]:
        repeated = sum(points.repeated for points in self._points.values())
        dropped = sum(points.branches - len(points.old) for points in self._points.values())
        found = []
        if repeated:
            found.append(f"{repeated} values were logged again at their step with another value; the later one counts.")
        if dropped:
            found.append(f"Steps go back so often that {dropped} old branches are not kept.")
        return found


def _frozen(column: array[float]) -> Floats:
    values = np.array(column, dtype=np.float64)
    values.setflags(write=False)
    return values
