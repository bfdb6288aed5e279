"""From the best of all cuts to one threshold: the middle of the widest stretch that is as good."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from engines.thresholds.objectives import Bools, Floats

DEFAULT = 0.5
LARGEST = np.finfo(np.float64).max


class Optimum(NamedTuple):
    """A threshold, and the objective that saying yes at or above it reaches."""

    threshold: float
    objective: float


def best_plateau(scores: Floats, values: Floats) -> Optimum:
    """The middle of the best plateau; of equally good plateaus that nearest to .5, then the higher one.

    scores: (m,) distinct and ascending. values: (m + 1,) the objective of saying yes to `scores[k:]`, so that the last
    one says yes to nothing. Every threshold above `scores[k - 1]` and up to `scores[k]` makes the cut k; neighbouring
    cuts of equal value are one plateau. Cuts that no finite threshold makes are left out.
    """
    low, high, reachable = cuts_between(scores)
    best = values[reachable].max()
    cuts = np.flatnonzero(reachable & (values == best))
    breaks = np.flatnonzero(np.diff(cuts) > 1)
    first, last = cuts[np.append(0, breaks + 1)], cuts[np.append(breaks, len(cuts) - 1)]
    middles = (_middle(float(low[a]), float(high[b])) for a, b in zip(first, last, strict=True))
    return Optimum(min(middles, key=lambda middle: (abs(middle - DEFAULT), -middle)), float(best))


def cuts_between(scores: Floats) -> tuple[Floats, Floats, Bools]:
    """Of every cut (m + 1,): the scores between which its thresholds lie, and whether a finite one makes it."""
    low, high = np.append(-np.inf, scores), np.append(scores, np.inf)
    return low, high, (high > -np.inf) & (low < LARGEST)


def _middle(low: float, high: float) -> float:
    """A number above `low` and not above `high`: one that float32 holds exactly if there is one, halfway if it can be.

    So a comparison cuts alike in float32 and in float64. What has no end is taken to end at 0 below and at 1 above,
    where probabilities do.
    """
    below = low if low > -math.inf else min(0.0, high)
    above = high if high < math.inf else max(1.0, low)
    halfway = below / 2 + above / 2
    with np.errstate(over="ignore"):
        next_short = np.nextafter(np.float32(low), np.float32(np.inf))
        short = (float(np.float32(halfway)), float(np.float32(above)), float(next_short))
    choices = (*short, halfway, above, math.nextafter(low, math.inf))
    return next(choice for choice in choices if low < choice <= high and math.isfinite(choice))
