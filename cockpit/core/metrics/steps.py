"""The steps of a run as its loop logged them, followed without reading a byte twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cockpit.core.hosts.links import want
from cockpit.core.series import Floats
from engines.contract.steps import ABSENT, DATA_WAIT, columns_of, logged, segments_in

WIDE = ("step", "time", "loss", "lr", "grad_norm", DATA_WAIT)
"""What is kept of each step, ABSENT where it was not logged."""
OLD_BRANCHES = 16
"""Superseded branches that are kept, the newest."""


@dataclass(frozen=True)
class Steps:
    """One value a step, in step order: an immutable view `(columns, n)` of what has been read."""

    table: Floats
    names: tuple[str, ...] = WIDE

    def column(self, name: str) -> Floats:
        """`(n,)`."""
        column: Floats = self.table[self.names.index(name)]
        return column

    @property
    def newest(self) -> int:
        """Steps done; 0 before the first is logged."""
        return int(self.table[0, -1]) + 1 if self.table.size else 0

    def last(self, name: str) -> float | None:
        """The value that was logged last, NaN if it was that; None where none was."""
        column = self.column(name)
        if not logged(column[-1:]).any():  # a log may have it once in a hundred steps
            column = column[logged(column)]
        return float(column[-1]) if len(column) else None

    def rate(self, stepping: Callable[[float, float], float], recent: int = 50) -> float | None:
        """Steps per second over the last `recent` steps; `stepping` gives the seconds between two of them."""
        steps, times = self.column("step")[-recent:], self.column("time")[-recent:]
        seconds = stepping(float(times[0]), float(times[-1])) if len(times) > 1 else 0.0
        return float(steps[-1] - steps[0]) / seconds if seconds > 0 else None


NO_STEPS = Steps(np.empty((len(WIDE), 0)))


class StepFollower:
    """Reads the records appended to `metrics/steps` since the last call; attempts supersede as in `read_series`.

    It keeps the columns WIDE, or those and all others that appear, and then also what was superseded.
    """

    def __init__(self, folder: Path, *, everything: bool = False) -> None:
        want(folder.parent.parent)
        self._folder = folder
        self._everything = everything
        self._names: tuple[str, ...] = WIDE
        self._old: list[Floats] = []
        self._segment = 0
        self._offset = 0
        self._table = NO_STEPS.table
        self._count = 0

    @property
    def steps(self) -> Steps:
        return Steps(self._table[:, : self._count], self._names)

    @property
    def superseded(self) -> list[Steps]:
        """What later attempts replaced, one unbroken branch each, oldest first; only where everything is kept."""
        return [Steps(branch, self._names[: len(branch)]) for branch in self._old]

    def poll(self) -> bool:
        """Read what is new and say whether anything changed. Raises OSError."""
        segments = sorted((int(file.stem), file) for file in segments_in(self._folder))
        changed = False
        if self._vanished(dict(segments)):
            self._segment, self._offset, self._count, changed = 0, 0, 0, True
            self._old.clear()
        for number, file in segments:
            if number > self._segment:
                self._segment, self._offset = number, 0
            if number == self._segment:
                changed |= self._read(file)
        return changed

    def _vanished(self, segments: dict[int, Path]) -> bool:
        """Whether what was read is there no more, as when someone replaced the folder."""
        if not self._segment:
            return False
        file = segments.get(self._segment)
        return file is None or file.stat().st_size < self._offset

    def _read(self, file: Path) -> bool:
        names = columns_of(file)  # none: not written yet, or damaged, and records mean nothing without their names
        width, size = 8 * len(names), file.stat().st_size
        if not width or size - self._offset < width:
            return False
        with open(file, "rb") as stream:
            stream.seek(self._offset)
            data = stream.read((size - self._offset) // width * width)
        data = data[: len(data) // width * width]
        self._offset += len(data)
        self._take(names, np.frombuffer(data).reshape(-1, len(names)))
        return True

    def _take(self, names: Sequence[str], records: Floats) -> None:
        if self._everything:
            self._add_columns([name for name in names if name not in self._names])
        columns = np.empty((len(self._names), len(records)))
        for place, name in enumerate(self._names):
            columns[place] = records[:, names.index(name)] if name in names else ABSENT
        columns = _only(columns, np.isfinite(columns[0]))
        if not columns.size:
            return
        # Backwards in time a record counts only while its step is below everything seen since.
        lowest = np.minimum.accumulate(columns[0, ::-1])[::-1]
        kept = int(np.searchsorted(self._table[0, : self._count], lowest[0]))
        counts = columns[0] < np.append(lowest[1:], np.inf)
        if self._everything:
            self._keep_old(self._table[:, kept : self._count].copy(), columns[:, ~counts])
        columns = _only(columns, counts)
        total = kept + columns.shape[1]
        if total > self._table.shape[1] or kept < self._count:  # never write into what a reader may hold
            grown = np.empty((len(self._names), max(1024, 2 * total)))
            grown[:, :kept] = self._table[:, :kept]
            self._table = grown
        self._table[:, kept:total] = columns
        self._count = total

    def _add_columns(self, new: Sequence[str]) -> None:
        if new:
            self._names += tuple(dict.fromkeys(new))
            missing = np.full((len(self._names) - len(self._table), self._table.shape[1]), ABSENT)
            self._table = np.concatenate([self._table, missing])

    def _keep_old(self, *parts: Floats) -> None:
        """Keep superseded records as branches, each from one step that went back to the next."""
        for part in parts:
            backwards = np.flatnonzero(np.diff(part[0]) <= 0) + 1
            self._old += [branch for branch in np.split(part, backwards, axis=1) if branch.size]
        del self._old[:-OLD_BRANCHES]


def _only(columns: Floats, there: npt.NDArray[np.bool_]) -> Floats:
    """Those of `columns: (names, n)` that are `there: (n,)`; where all are, as nearly always, without a copy."""
    return columns if there.all() else columns[:, there]
