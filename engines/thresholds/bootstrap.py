"""How sure a threshold is: what would have been chosen on resampled groups, and which thresholds are nearly as good.

Frames of one group are alike, and so are frames close in time: groups are drawn with replacement, then, inside each
drawn group, as many of its blocks as it has. A resample is a weight per block, and its optimum is exact: that of the
copied rows over all their distinct scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.thresholds.head import Head
from engines.thresholds.objectives import Counts, Floats, Ints
from engines.thresholds.plateau import best_plateau, cuts_between

RESAMPLES, LEAST_RESAMPLES = 1000, 200
WORK = 100_000_000
"""Rows times resamples that bound the work: more than 100,000 rows are resampled less often."""
LEVEL = 0.95
LEAST_GROUPS = 5
"""Of fewer an interval would look surer than it is."""
LEAST_GAIN = 0.002
"""A threshold moves for no smaller gain in objective."""
BUCKETS = 512
CELLS = 1 << 19
"""Rows times resamples that are handled at a time."""
SEED = 0


@dataclass(frozen=True)
class Interval:
    """The middle 95 % of the thresholds chosen on `resamples` resamples of `groups` groups."""

    low: float
    high: float
    groups: int
    resamples: int


@dataclass(frozen=True)
class RegretSet:
    """All thresholds that lose at most `regret` of the objective: its lowest and its highest member.

    With J the objective on all rows, t* its optimum and t_r the threshold chosen on resample r, the regret is the
    quantile `widened` over r of J(t*) − J(t_r), and the set is {t: J(t) ≥ J(t*) − regret}.
    """

    low: float
    high: float
    regret: float


@dataclass(frozen=True)
class Certainty:
    """What resampling says of a head's threshold. Without `regret_set` there was but one block to draw."""

    groups: int
    lonely: str
    """What one group alone holds: "positives", "negatives" or nothing. Every resample would have the same ones."""
    interval: Interval | None
    regret_set: RegretSet | None

    @property
    def least_gain(self) -> float:
        """The gain in objective that a threshold moves for: above the regret, and LEAST_GAIN at least."""
        return max(LEAST_GAIN, self.regret_set.regret if self.regret_set else 0.0)


def certainty(head: Head, resamples: int = RESAMPLES) -> Certainty:
    """Of a tunable head. Resamples without a positive or without a negative are left out.

    There is no interval with fewer than LEAST_GROUPS groups, nor where one group holds all positives or all negatives.
    """
    blocks = _Blocks(head)
    rows = _Rows(head, blocks.of_row)
    kinds = {"positives": head.targets, "negatives": ~head.targets}
    lonely = [name for name, rows_of in kinds.items() if len(np.unique(head.groups[rows_of])) < 2]
    weights = blocks.draw(min(resamples, max(LEAST_RESAMPLES, WORK // len(head.scores))))
    support = np.column_stack([np.bincount(blocks.of_row[of], minlength=weights.shape[1]) for of in kinds.values()])
    weights = weights[(weights @ support > 0).all(axis=1)]
    if weights.shape[1] < 2 or not len(weights):
        return Certainty(blocks.groups, "".join(lonely[:1]), None, None)
    distinct, times = np.unique(weights, axis=0, return_counts=True)
    chosen = np.repeat(list(rows.chosen(distinct)), times)
    interval = None
    if blocks.groups >= LEAST_GROUPS and not lonely:
        low, high = np.quantile(chosen, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="nearest")
        interval = Interval(float(low), float(high), blocks.groups, len(weights))
    level = widened(blocks.groups if blocks.groups > 1 else weights.shape[1])
    regret = float(np.quantile(rows.optimum.objective - rows.values_at(chosen), level, method="higher"))
    return Certainty(blocks.groups, "".join(lonely[:1]), interval, rows.within(regret, head.bounds))


def widened(groups: int) -> float:
    """The quantile that holds LEVEL of all new data where no more than `groups` were resampled.

    Resamples of n groups have (n − 1) / n of the variance of new ones, and no heavy ends as Student's t has. So it is
    2 Φ(√(n / (n − 1)) t) − 1, not 2 Φ(z) − 1: .989 for 8 groups, .968 for 20 (Hesterberg 2015, "What Teachers Should
    Know About the Bootstrap": the expanded percentile interval).
    """
    angle = np.linspace(
        0, math.pi / 2, 20_001
    )  # of t = √freedom · tan(angle), whose density is cos(angle)^(freedom - 1)
    density = np.cos(angle) ** (groups - 2)
    share = np.cumsum((density[1:] + density[:-1]) / 2)
    t = math.sqrt(groups - 1) * math.tan(float(np.interp(LEVEL * share[-1], share, angle[1:])))
    return math.erf(math.sqrt(groups / (groups - 1)) * t / math.sqrt(2))


class _Blocks:
    """The blocks of all groups. of_row: (n,) the block of each row."""

    def __init__(self, head: Head) -> None:
        _, group = np.unique(head.groups, return_inverse=True)
        block = np.zeros_like(group) if head.blocks is None else head.blocks - head.blocks.min()
        pairs, self.of_row = np.unique(group * (int(block.max()) + 1) + block, return_inverse=True)
        self._group_of_block: Ints = pairs // (int(block.max()) + 1)
        self.groups = int(self._group_of_block[-1]) + 1

    def draw(self, resamples: int) -> Ints:
        """(resamples, blocks): how often each block is in each resample."""
        random = np.random.default_rng(SEED)
        times = random.multinomial(self.groups, np.full(self.groups, 1 / self.groups), size=resamples)
        parts = []
        for group, size in enumerate(np.bincount(self._group_of_block)):
            parts.append(random.multinomial(times[:, group] * size, np.full(size, 1 / size)))
        return np.concatenate(parts, axis=1)


class _Rows:
    """The rows of a head by ascending score; bounds leave out what cannot win, as in `search`.

    Sums over BUCKETS stretches of scores give the objective at their edges; a cut inside a stretch is no better than
    all its positives and none of its negatives and quiet rows. Only cuts between stretches that can win are counted.
    """

    def __init__(self, head: Head, blocks: Ints) -> None:
        order = np.argsort(head.scores, kind="stable")
        ascending = head.scores[order].astype(np.float64)
        self._value = head.objective.value
        self._block = blocks[order]
        quiet = np.zeros(len(order), np.bool_) if head.quiet is None else head.quiet
        self._kinds = tuple(kind[order] for kind in (head.targets, ~head.targets, quiet))
        self._first = np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1]))
        self.scores: Floats = ascending[self._first]
        finite = np.isfinite(self.scores[[0, -1]]).all()  # else some edges are no threshold: no bound may count on them
        self._edges = np.unique(np.linspace(0, len(self.scores), BUCKETS if finite else 1, endpoint=False).astype(int))
        above = self._above(np.ones((1, len(order)), np.int64), 0, len(order), self._first)
        self._values = self._value(Counts(*above, *(part[:, :1] for part in above)))[0]
        self.optimum = best_plateau(self.scores, self._values)

    def values_at(self, thresholds: Floats) -> Floats:
        """The objective on all rows."""
        values: Floats = self._values[np.searchsorted(self.scores, thresholds)]
        return values

    def within(self, regret: float, bounds: tuple[float, float]) -> RegretSet:
        """The thresholds from the lowest to the highest that loses no more."""
        low, high, reachable = cuts_between(self.scores)
        members = np.flatnonzero(reachable & (self.optimum.objective - self._values <= regret))
        lowest = max(bounds[0], math.nextafter(float(low[members[0]]), math.inf))
        return RegretSet(lowest, min(bounds[1], float(high[members[-1]])), regret)

    def chosen(self, weights: Ints) -> Iterator[float]:
        """The optimum of each resample of `weights: (resamples, blocks)`."""
        size = max(1, CELLS // len(self._block))
        for start in range(0, len(weights), size):
            yield from self._optima(weights[start : start + size][:, self._block])

    def _optima(self, weights: Ints) -> Iterator[float]:
        """Of so many resamples at once, whose rows weigh `weights: (resamples, n)`."""
        above = self._above(weights, 0, len(weights[0]), self._first[self._edges])
        totals = [part[:, :1] for part in above]
        first, last = self._can_win(above, totals)
        edges = np.append(self._edges, len(self.scores))
        low, end = int(edges[first]), int(edges[last + 1])
        rows = np.append(self._first, len(self._block))
        inside = self._above(weights, int(rows[low]), int(rows[end]), self._first[low:end])
        yes = [part + higher[:, last + 1 : last + 2] for part, higher in zip(inside, above, strict=True)]
        values = self._value(Counts(*yes, *totals))
        below = min(low, 1)  # the score below ends the lowest plateau; its own cut cannot win
        values = np.pad(values, ((0, 0), (below, 0)), constant_values=-np.inf)
        for row in values:
            yield best_plateau(self.scores[low - below : end], row).threshold

    def _can_win(self, above: list[Ints], totals: list[Ints]) -> tuple[int, int]:
        """The first and the last stretch that may hold the best cut of any resample."""
        hits, false_yes, alarms = above
        best = self._value(Counts(*above, *totals)).max(axis=1, keepdims=True)
        bounds = self._value(Counts(hits[:, :-1], false_yes[:, 1:], alarms[:, 1:], *totals))
        places = np.flatnonzero((bounds >= best).any(axis=0))
        return int(places[0]), int(places[-1])

    def _above(self, weights: Ints, begin: int, stop: int, starts: Ints) -> list[Ints]:
        """Of each kind, the weight of rows from each of `starts` to `stop`, then 0: (resamples, starts + 1) each."""
        parts = [
            np.add.reduceat(weights[:, begin:stop] * kind[begin:stop], starts - begin, axis=1) for kind in self._kinds
        ]
        return [_from_above(part) for part in parts]


def _from_above(parts: NDArray[np.integer]) -> Ints:
    """(r, m + 1) of parts: (r, m), sums over each part and all later ones; the last is 0."""
    sums = np.zeros((parts.shape[0], parts.shape[1] + 1), np.int64)
    np.cumsum(parts[:, ::-1], axis=1, dtype=np.int64, out=sums[:, -2::-1])
    return sums
