"""Thresholds from a fixed grid of 17 values, .10, .15 … .90: what an export uses until a person reviews them.

A score at or above the threshold counts as a yes, here and everywhere else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

GRID: NDArray[np.float64] = np.arange(2, 19) / 20
"""Integers over 20: `arange(.1, .9, .05)` would stop at .85."""
DEFAULT = 0.5
IDLE_WEIGHT = 0.5
"""What a false yes rate of 1 on idle frames costs, in F1."""

Bools = NDArray[np.bool_]
Scores = NDArray[np.floating]


class Choice(NamedTuple):
    """A threshold and its objective; without support the default and None."""

    threshold: float
    objective: float | None

    @property
    def supported(self) -> bool:
        return self.objective is not None


def binary_threshold(scores: Scores, targets: Bools, idle: Bools | None = None) -> Choice:
    """The threshold with the best F1, less half the false yes rate on idle frames.

    scores, targets, idle: (n,), the frames on which the head counts. No positive or no negative: no support.
    """
    positives = int(targets.sum())
    if positives in (0, len(targets)):
        return Choice(DEFAULT, None)
    hits, predicted = _at_or_above(scores[targets]), _at_or_above(scores)
    objective = 2 * hits / (predicted + positives)
    if idle is not None and idle.any():
        objective = objective - IDLE_WEIGHT * _at_or_above(scores[idle]) / idle.sum()
    return _best(objective)


def confidence_threshold(confidence: Scores, correct: Bools) -> Choice:
    """The least confidence to act on with the best accuracy times coverage, both over n decisions.

    confidence: (n,) probability of the class chosen. correct: (n,) whether it was the right one. A head that is never
    right or was never asked has no support.
    """
    if not correct.any():
        return Choice(DEFAULT, None)
    # accuracy · coverage = (right / answered) · (answered / asked)
    return _best(_at_or_above(confidence[correct]) / len(correct))


def _at_or_above(scores: Scores) -> NDArray[np.int64]:
    """How many scores reach each value of the grid: (17,). NaN reaches none."""
    reached = np.searchsorted(GRID, scores[~np.isnan(scores)].astype(np.float64), side="right")
    below: NDArray[np.int64] = np.bincount(reached, minlength=len(GRID) + 1).cumsum()
    return below[-1:] - below[:-1]


def _best(objective: NDArray[np.float64]) -> Choice:
    """The best of the grid; of equally good ones the nearest to .5, then the higher one, which says yes less often."""
    tied = np.flatnonzero(objective >= objective.max() - 1e-12)
    middle = int(np.searchsorted(GRID, DEFAULT))
    nearest = min(tied.tolist(), key=lambda k: (abs(k - middle), -k))
    return Choice(float(GRID[nearest]), float(objective[nearest]))
