"""A run's directory as a `MetricSource`: every logged step, and the values of every epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from cockpit.core.metric_series import Floats, Series
from engines.contract.errors import UserError
from engines.contract.events import Epoch
from engines.contract.history import History, column_value
from engines.contract.reported import PLACES
from engines.contract.rundir import RunDirectory
from engines.contract.state import RunReader
from engines.contract.steps import FIXED, logged, read_segments


class RunSource:
    """Follows one run. Metrics of steps go by their column, those of epochs by `train.loss`, `score`, `lr`."""

    kind = "run's directory"

    def __init__(self, path: Path) -> None:
        self.title = str(path)
        self.path = path
        self._run = RunDirectory(path)
        self._reader = RunReader(self._run)
        self._stamp: object = None
        self._series: dict[str, Series] | None = None
        self._unreadable = ""

    def poll(self) -> bool:
        before = (self._stamp, self._unreadable)
        self._unreadable = ""
        events = False
        try:
            events = bool(self._reader.poll())
            self._stamp = [(file.name, file.stat().st_size) for file in sorted(self._run.steps.glob("*.f64"))]
        except (OSError, UserError) as error:
            self._unreadable = f"{self.path} cannot be read now ({error})."
        changed = events or before != (self._stamp, self._unreadable)
        if changed:
            self._series = None
        return changed

    def series(self) -> dict[str, Series]:
        if self._series is None:
            self._series = {one.name: one for one in (*_of_steps(self._run), *_of_epochs(self._reader.history))}
        return self._series

    def problems(self) -> list[str]:
        found = [self._unreadable] if self._unreadable else []
        if count := self._reader.damaged_lines:
            found.append(f"{count} damaged lines of events.jsonl were passed over.")
        return found


def _of_steps(run: RunDirectory) -> Iterator[Series]:
    """A series for each column of the step records."""
    segments = read_segments(run.steps)
    names = dict.fromkeys(name for columns, _ in segments for name in columns if name not in (*FIXED, *PLACES))
    for name in names:
        wanted = (*FIXED, *PLACES, name)
        parts = [_columns(columns, records, wanted) for columns, records in segments if name in columns]
        table = np.concatenate(parts, axis=1)
        yield _in_force(name, table[:, np.isfinite(table[0])])


def _columns(names: list[str], records: Floats, wanted: Iterable[str]) -> Floats:
    """`(wanted, n)`: NaN in the place of a column that a segment lacks."""
    missing = np.full(len(records), np.nan)
    return np.stack([records[:, names.index(name)] if name in names else missing for name in wanted])


def _in_force(name: str, table: Floats) -> Series:
    """One value a step of `table: (step, attempt, epoch, time, value; n)`; what a later attempt supersedes is old."""
    step, attempt, value = table[[0, 1, 4]]
    lowest_after = np.append(np.minimum.accumulate(step[::-1])[::-1][1:], np.inf)
    there = logged(value)
    kept = (step < lowest_after) & there
    # A record repeated at its step by its own attempt is no branch: it was completed.
    old = ~kept & there & ((step > lowest_after) | (attempt != attempt[-1:]))
    branches = tuple((step[old & (attempt == one)], value[old & (attempt == one)]) for one in np.unique(attempt[old]))
    return _series(name, table[[0, 2, 3, 4]][:, kept], branches)


def _of_epochs(history: History) -> Iterator[Series]:
    rows = list(history.epochs.values())
    for group in ("train", "validation"):
        for key in dict.fromkeys(key for row in rows for key in getattr(row, group)):
            name = f"{group}.{key}"
            yield _epoch_series(name, history)
    if any(row.score is not None for row in rows):
        yield _epoch_series("score", history)


def _epoch_series(name: str, history: History) -> Series:
    def points(rows: Iterable[Epoch]) -> Floats:
        """`(4, n)`: step, epoch, time, value of the rows that have one."""
        found = [
            (row.step, row.epoch, row.time, np.nan if value is None else value)
            for row in rows
            if (value := column_value(name, row)) is not None or name in row.nonfinite
        ]
        return np.array(found, dtype=np.float64).reshape(-1, 4).T

    attempts = sorted({row.attempt for row in history.superseded})
    branches = (points(row for row in history.superseded if row.attempt == attempt) for attempt in attempts)
    old = tuple((branch[0], branch[3]) for branch in branches if branch.size)
    return _series(name, points(history.epochs.values()), old)


def _series(name: str, points: Floats, old: tuple[tuple[Floats, Floats], ...]) -> Series:
    """Of `points: (step, epoch, time, value; n)`."""
    points.setflags(write=False)
    step, epoch, time, value = points
    return Series(name, step, epoch, time, value, old)
