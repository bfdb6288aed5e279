"""How sure a threshold is: its interval over resampled groups.

Frames of one group are alike, so whole groups are drawn, with replacement. A resample is a weight a group: its
counts are a product with the counts of each group, and nothing is sorted again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.thresholds.head import Head
from engines.thresholds.objectives import Counts, Floats, Ints
from engines.thresholds.plateau import best_plateau

RESAMPLES = 1000
LEVEL = 0.95
MOST_CUTS = 256
"""Distinct scores a resample chooses from; of more, quantiles of the positives and of the negatives."""
SEED = 0


@dataclass(frozen=True)
class Interval:
    """The middle 95 % of the thresholds chosen on `resamples` resamples of `groups` groups."""

    low: float
    high: float
    groups: int
    resamples: int


def group_interval(head: Head, resamples: int = RESAMPLES) -> Interval | None:
    """The interval of a tunable head's threshold; None where groups cannot tell.

    One group cannot, nor can several of which one alone holds all positives, or all negatives: every resample would
    have the same ones. Of the `resamples` drawn those without either are left out.
    """
    groups, members = np.unique(head.groups, return_inverse=True)
    cuts = _cuts(head)
    yes, totals = _group_counts(head, cuts, members, len(groups))
    if (np.count_nonzero(totals[:, :2], axis=0) < 2).any():
        return None
    random = np.random.default_rng(SEED)
    weights = random.multinomial(len(groups), np.full(len(groups), 1 / len(groups)), size=resamples)
    weights = weights[(weights @ totals[:, :2] > 0).all(axis=1)]
    counts = Counts(*(weights @ kind for kind in yes), *(weights @ totals).T[:, :, None])
    thresholds = [best_plateau(cuts, values).threshold for values in head.objective.value(counts)]
    low, high = np.quantile(thresholds, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="nearest")
    return Interval(float(low), float(high), len(groups), len(weights))


def _cuts(head: Head) -> Floats:
    """At most about MOST_CUTS distinct finite scores, ascending."""
    scores = head.scores.astype(np.float64)
    finite = np.isfinite(scores)
    distinct = np.unique(scores[finite])
    if len(distinct) <= MOST_CUTS:
        return distinct
    shares = np.linspace(0, 1, MOST_CUTS // 2)
    kinds = (scores[finite & head.targets], scores[finite & ~head.targets])
    chosen = [np.quantile(kind, shares, method="nearest") for kind in kinds if len(kind)]
    return np.unique(np.concatenate(chosen))


def _group_counts(head: Head, cuts: Floats, members: Ints, groups: int) -> tuple[Ints, Ints]:
    """Yeses of each group at each cut: (3, groups, cuts + 1), and what there is to say yes to: (groups, 3)."""
    reached = np.searchsorted(cuts, head.scores.astype(np.float64), side="right")  # how many cuts say yes
    cells = members * (len(cuts) + 1) + reached
    quiet = np.zeros(len(cells), np.bool_) if head.quiet is None else head.quiet
    tables = [
        np.bincount(cells[kind], minlength=groups * (len(cuts) + 1)).reshape(groups, len(cuts) + 1)
        for kind in (head.targets, ~head.targets, quiet)
    ]
    at_least = np.stack([table[:, ::-1].cumsum(axis=1)[:, ::-1] for table in tables])
    # a frame that reaches r cuts counts at the cuts 0 … r − 1; nothing counts at the last, which says yes to nothing
    yes = np.concatenate([at_least[:, :, 1:], np.zeros((3, groups, 1), np.int64)], axis=2)
    return yes, at_least[:, :, 0].T
