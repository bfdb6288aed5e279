"""Thresholds from the source document's fixed grid of 17 values, .10, .15 … .90: kept for comparison."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engines.thresholds.head import Head
from engines.thresholds.plateau import DEFAULT, Optimum
from engines.thresholds.sweep import Sweep

GRID: NDArray[np.float64] = np.arange(2, 19) / 20
"""Integers over 20: `arange(.1, .9, .05)` would stop at .85."""


def grid_optimum(head: Head) -> Optimum:
    """The best of the grid; of equally good values the nearest to .5, then the higher one, which says yes less often.

    Needs a positive and a negative. Raises `DataError` where a score is not a number.
    """
    values = head.objective.value(Sweep(head.scores, head.targets, head.quiet).at(GRID))
    middle = int(np.searchsorted(GRID, DEFAULT))
    nearest = min(np.flatnonzero(values == values.max()).tolist(), key=lambda k: (abs(k - middle), -k))
    return Optimum(float(GRID[nearest]), float(values[nearest]))
