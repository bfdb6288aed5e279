"""What one threshold is chosen for: the scores of a binary or confidence head, and what would have been right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engines.thresholds.objectives import Bools, Counts, Ints, Objective

Scores = NDArray[np.floating]


@dataclass(frozen=True)
class Head:
    """The n rows (frames, samples) on which one head is judged.

    scores: (n,) probability, logit or confidence. targets: (n,) whether a yes is right. quiet: (n,) rows on which any
    yes is a false alarm; None where there are no such rows. groups: (n,) the group of each row, such as its recording;
    rows of one group are alike, so an interval resamples groups. blocks: (n,) the stretch of time of each row inside
    its group, which is drawn too; None where groups are whole. bounds: the thresholds that make sense.

    A project may act by more rules than `score >= threshold`. Then `scores` are what the threshold is chosen by, `raw`
    (n,) what the model said where that is another score, and `sent(threshold)` (n,) whether a yes comes out in the end.
    """

    name: str
    objective: Objective
    scores: Scores
    targets: Bools
    groups: Ints
    quiet: Bools | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    blocks: Ints | None = None
    raw: Scores | None = None
    sent: Callable[[float], Bools] | None = None

    @property
    def positives(self) -> int:
        return int(np.count_nonzero(self.targets))

    @property
    def negatives(self) -> int:
        return len(self.targets) - self.positives

    def counts(self, yes: Bools) -> Counts:
        """Of any decisions about its rows, `yes: (n,)`."""
        hits = np.count_nonzero(yes & self.targets)
        alarms = 0 if self.quiet is None else np.count_nonzero(yes & self.quiet)
        return Counts(*(np.asarray(n) for n in (hits, np.count_nonzero(yes) - hits, alarms, *self._sizes)))

    @cached_property
    def _sizes(self) -> tuple[int, int, int]:
        """How many positives, negatives and quiet rows there are."""
        quiet = 0 if self.quiet is None else int(np.count_nonzero(self.quiet))
        return self.positives, self.negatives, quiet

    @cached_property
    def untunable(self) -> str:
        """Why no threshold can be chosen from these frames; empty where one can."""
        if damaged := int(np.count_nonzero(np.isnan(self.scores))):
            return f"{damaged:,} of {len(self.scores):,} scores are not numbers"
        if not len(self.scores):
            return "never judged"
        if not self.positives:
            return "no positives"
        return "" if self.negatives else "no negatives"


def blocks_of(groups: Ints, rows: int) -> Ints:
    """(n,): each group's rows, in their order, cut into blocks of `rows`; numbered from 0 in each group."""
    order = np.argsort(groups, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(groups[order]) != 0)) if len(groups) else np.zeros(0, np.int64)
    places = np.empty(len(groups), np.int64)
    places[order] = np.arange(len(groups)) - np.repeat(first, np.diff(np.append(first, len(groups))))
    return places // rows
