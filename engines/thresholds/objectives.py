"""What a threshold is worth: counts of yeses, the rates made of them, and the objectives a search maximises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
IDLE_WEIGHT = 0.5
"""What a false yes rate of 1 on idle frames costs, in F1."""


@dataclass(frozen=True)
class Counts:
    """How many scores a threshold says yes to, at one threshold or at each of many (all arrays broadcast).

    hits: yes, and rightly so. false_yes: yes, and wrongly so. idle_yes: yes on an idle frame. positives, negatives and
    idle: how many there are to say yes to. Rates are NaN where they are undefined.
    """

    hits: Ints
    false_yes: Ints
    idle_yes: Ints
    positives: Ints
    negatives: Ints
    idle: Ints

    @property
    def f1(self) -> Floats:
        """2 hits / (yeses + positives)."""
        return _ratio(2 * self.hits, self.hits + self.false_yes + self.positives)

    @property
    def precision(self) -> Floats:
        return _ratio(self.hits, self.hits + self.false_yes)

    @property
    def recall(self) -> Floats:
        return _ratio(self.hits, self.positives)

    @property
    def idle_rate(self) -> Floats:
        """The idle false-positive rate: the share of idle frames with a yes."""
        return _ratio(self.idle_yes, self.idle)


def _ratio(part: Ints, whole: Ints) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = np.divide(part, whole)
    return ratio


@dataclass(frozen=True)
class Objective:
    """What a search maximises, by name.

    `value` must not fall when there are more hits, nor rise when there are more false or idle yeses: the exact search
    leaves out what such a bound excludes.
    """

    title: str
    value: Callable[[Counts], Floats]


def _f1_less_idle(counts: Counts) -> Floats:
    return counts.f1 - IDLE_WEIGHT * counts.idle_yes / np.maximum(counts.idle, 1)


def _accuracy_coverage(counts: Counts) -> Floats:
    # (right / answered) · (answered / asked)
    return _ratio(counts.hits, counts.positives + counts.negatives)


F1 = Objective("F1", lambda counts: counts.f1)
F1_LESS_IDLE = Objective("F1 − 0.5 · idle false-positive rate", _f1_less_idle)
ACCURACY_COVERAGE = Objective("accuracy × coverage", _accuracy_coverage)
"""For the confidence of a choice: of all that was asked, the share answered rightly."""
