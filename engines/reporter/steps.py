"""Steps that a script reports under names of its own, gathered and written in blocks as step records."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engines.contract.steps import ABSENT, StepWriter
from engines.reporter.names import PLACES, column_name


@dataclass
class _Row:
    step: float
    epoch: float
    time: float
    values: dict[str, float]


class StepBuffer:
    """Rows not yet written. A row names only what was logged; the file's columns are all names seen so far."""

    def __init__(self, folder: Path, attempt: int) -> None:
        self._folder, self._attempt = folder, attempt
        self._names: list[str] = []
        self._rows: list[_Row] = []
        self._newest: _Row | None = None
        self._writer: StepWriter | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def newest_step(self) -> float | None:
        return self._newest.step if self._newest else None

    def add(self, step: float, epoch: float | None, values: Mapping[str, float]) -> None:
        """Keep one step's values; a step logged in several calls becomes one record."""
        row = self._newest
        if row is None or row.step != step:
            self._newest = row = _Row(step, ABSENT, 0.0, {})
        row.time = time.time()
        row.epoch = row.epoch if epoch is None else epoch
        row.values.update({column_name(name): value for name, value in values.items()})
        if not self._rows or self._rows[-1] is not row:
            self._rows.append(row)  # again, if it is written already: a later record of a step replaces it

    def flush(self) -> None:
        """Write what was gathered, with one write. Raises OSError, and keeps the rows then."""
        if not self._rows:
            return
        names = list(dict.fromkeys([*self._names, *(name for row in self._rows for name in row.values)]))
        if self._writer is None or names != self._names:
            writer = StepWriter(self._folder, [*PLACES, *names])
            self.close()
            self._writer, self._names = writer, names
        records = np.full((len(self._rows), 4 + len(names)), ABSENT)
        place = {name: 4 + index for index, name in enumerate(names)}
        for record, row in zip(records, self._rows, strict=True):
            record[:4] = row.step, self._attempt, row.epoch, row.time
            for name, value in row.values.items():
                record[place[name]] = value
        self._writer.append(records)
        self._rows.clear()

    def forget(self) -> None:
        """Give up the rows that could not be written."""
        self._rows.clear()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
