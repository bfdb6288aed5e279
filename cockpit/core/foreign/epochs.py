"""Which rows of an epoch table a log means: by its epochs, else by its rarest metric, which is its evaluation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cockpit.core.series import Floats
from engines.contract.steps import logged

MOST_ROWS = 2000
"""Of a log without epochs; one with more evaluations has rows that gather several."""


@dataclass(frozen=True)
class EpochRow:
    """The last values that each metric had in an epoch, by column; `number` counts from 1."""

    number: int
    step: int
    time: float
    values: dict[int, float]


def epoch_rows(place: Floats, values: Floats) -> list[EpochRow]:
    """Of `place: (step, epoch, time; n)` and `values: (n, metrics)`, ABSENT where a metric was not logged."""
    numbers, ends = _ends(place, values)
    rows = [
        EpochRow(int(number), int(place[0, end]), float(place[2, end]), {})
        for number, end in zip(numbers, ends, strict=True)
    ]
    begins = np.append(-1, ends[:-1])
    for column in range(values.shape[1]):
        there = np.flatnonzero(logged(values[:, column]))
        newest = np.searchsorted(there, ends, side="right") - 1
        for row, begin, index in zip(rows, begins, newest, strict=True):
            if index >= 0 and there[index] > begin:
                row.values[column] = float(values[there[index], column])
        if rows and len(there) and column not in rows[-1].values and there[-1] > ends[-1]:  # a result of the whole
            rows[-1].values[column] = float(values[there[-1], column])
    return rows


def _ends(place: Floats, values: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the rows, and the place of the last record that belongs to each.

    What says no epoch belongs to the next one that is named: evaluations name theirs, and end it.
    """
    step, epoch = place[0], place[1]
    if len(told := np.flatnonzero(np.isfinite(epoch))):
        number = _numbers(step[told], epoch[told])
        last = np.flatnonzero(np.append(number[1:] != number[:-1], True))
        return number[last], told[last]
    counts = logged(values).sum(axis=0)
    rarest = int(np.where(counts > 1, counts, np.iinfo(np.int64).max).argmin())
    ends = np.flatnonzero(logged(values[:, rarest]))
    ends = ends[::-1][:: -(-len(ends) // MOST_ROWS)][::-1]
    return np.arange(1, len(ends) + 1), ends


def _numbers(step: Floats, epoch: Floats) -> NDArray[np.int64]:
    """Epochs counted from 1. Some logs count from 0; in others epoch 0 is the evaluation before the first step."""
    counts_from_zero = epoch.min() == 0 and (np.array_equal(step, epoch) or step[epoch == 0].max() > 0)
    return np.ceil(epoch).astype(np.int64) + int(counts_from_zero)
