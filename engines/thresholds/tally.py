"""Counts at any threshold in the space of the scores themselves: what moving a cursor needs.

A `Sweep` holds the counts at every distinct score, four numbers a frame; curves need them all, a cursor one at a time.
The counts of the two are the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engines.thresholds.head import Scores
from engines.thresholds.objectives import Bools, Counts
from engines.thresholds.sweep import refuse_nan


class Tally:
    """The scores of each kind, sorted: positives `(p,)`, negatives `(q,)` and those of quiet frames.

    Args:
        scores, targets, quiet: (n,) of a `Head`.

    Raises:
        DataError: a score is not a number.
    """

    def __init__(self, scores: Scores, targets: Bools, quiet: Bools | None = None) -> None:
        refuse_nan(scores)
        if scores.dtype not in (np.float32, np.float64):
            scores = scores.astype(np.float64)
        self._positives, self._negatives = np.sort(scores[targets]), np.sort(scores[~targets])
        self._quiet = np.sort(scores[quiet]) if quiet is not None else scores[:0]

    def at(self, threshold: ArrayLike) -> Counts:
        """The counts at any threshold or array of them."""
        kinds = (self._positives, self._negatives, self._quiet)
        yes = (len(kind) - _below(kind, threshold) for kind in kinds)
        return Counts(*yes, *(np.int64(len(kind)) for kind in kinds))

    def lowest_from(self, threshold: float) -> float | None:
        """The lowest score that `threshold` says yes to."""
        found = [float(kind[at]) for kind, at in self._cuts(threshold) if at < len(kind)]
        return min(found, default=None)

    def highest_below(self, threshold: float) -> float | None:
        """The highest score that `threshold` says no to."""
        found = [float(kind[at - 1]) for kind, at in self._cuts(threshold) if at > 0]
        return max(found, default=None)

    def _cuts(self, threshold: float) -> list[tuple[Scores, int]]:
        return [(kind, int(_below(kind, threshold))) for kind in (self._positives, self._negatives)]


def _below(ascending: Scores, threshold: ArrayLike) -> NDArray[np.int64]:
    """How many scores lie below each threshold: searched in the scores' own precision, which copies none of them."""
    return np.searchsorted(ascending, raised(np.asarray(threshold, np.float64), ascending.dtype), side="left")


def raised(threshold: NDArray[np.float64], dtype: np.dtype[np.floating]) -> NDArray[np.floating]:
    """The lowest number of `dtype` that is not below each threshold: it says yes to the same scores of that type."""
    with np.errstate(over="ignore"):
        near = threshold.astype(dtype)
        return np.where(near < threshold, np.nextafter(near, dtype.type(np.inf)), near)
