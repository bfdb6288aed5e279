"""Every threshold of one head at once: counts and curves at all distinct scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engines.basics.errors import DataError
from engines.thresholds.head import Scores
from engines.thresholds.objectives import Bools, Counts, Floats, Ints, Objective
from engines.thresholds.plateau import Optimum, best_plateau


class Sweep:
    """Built once by one sort; then each question takes microseconds, so that a cursor can move over it.

    scores: (m,) the distinct scores, ascending. counts: (m + 1,) counts of the cuts "yes to `scores[k:]`"; the last
    says yes to nothing. No cut lies inside a tie. An attribute of `counts`, such as `counts.f1`, is a curve.

    Args:
        scores, targets, quiet: (n,) of a `Head`.

    Raises:
        DataError: a score is not a number.
    """

    def __init__(self, scores: Scores, targets: Bools, quiet: Bools | None = None) -> None:
        refuse_nan(scores)
        order = np.argsort(scores)
        ascending = scores[order]
        is_first = np.append(True, ascending[1:] != ascending[:-1])[: len(scores)]
        first = np.append(np.flatnonzero(is_first), len(scores))
        hits = _from(first, targets[order])
        alarms = np.zeros_like(hits) if quiet is None else _from(first, quiet[order])
        self.scores: Floats = ascending[is_first].astype(np.float64)
        self.counts = Counts(
            hits, len(scores) - first - hits, alarms, hits[0], len(scores) - hits[0], alarms[0]
        )  # fmt: skip

    def at(self, threshold: ArrayLike) -> Counts:
        """The counts at any threshold or array of them."""
        cut = np.searchsorted(self.scores, np.asarray(threshold, np.float64), side="left")
        counts = self.counts
        return Counts(
            counts.hits[cut], counts.false_yes[cut], counts.alarms[cut],
            counts.positives, counts.negatives, counts.quiet,
        )  # fmt: skip

    def optimum(self, objective: Objective) -> Optimum:
        """The best threshold there is. Needs a positive and a negative."""
        return best_plateau(self.scores, objective.value(self.counts))


def refuse_nan(scores: NDArray[np.floating]) -> None:
    """Raises `DataError` where a score is not a number: it is neither above nor below any threshold."""
    if damaged := np.flatnonzero(np.isnan(scores)).tolist():
        raise DataError(
            f"{len(damaged):,} of {len(scores):,} scores are not numbers (the first at index {damaged[0]}); "
            "no threshold can be chosen from them: check the model that made them."
        )


def _from(first: Ints, flags: Bools) -> Ints:
    """How many flags there are from each index on."""
    before = np.append(0, np.cumsum(flags))[first]
    after: Ints = before[-1] - before
    return after
