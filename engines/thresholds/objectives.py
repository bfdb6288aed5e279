"""What a threshold is worth: counts of yeses, the rates made of them, and the objectives a search maximises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ALARM_WEIGHT = 0.5
"""What a rate of 1 of false alarms costs, in F1."""


@dataclass(frozen=True)
class Counts:
    """How many scores a threshold says yes to, at one threshold or at each of many (all arrays broadcast).

    hits: yes, and rightly so. false_yes: yes, and wrongly so. alarms: yes on a quiet row. positives, negatives and
    quiet: how many there are to say yes to. Rates are NaN where they are undefined.
    """

    hits: Ints
    false_yes: Ints
    alarms: Ints
    positives: Ints
    negatives: Ints
    quiet: Ints

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
    def alarm_rate(self) -> Floats:
        """The rate of false alarms: the share of quiet rows with a yes."""
        return _ratio(self.alarms, self.quiet)


def _ratio(part: Ints, whole: Ints) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = np.divide(part, whole)
    return ratio


@dataclass(frozen=True)
class Objective:
    """What a search maximises, by name.

    `value` must not fall when there are more hits, nor rise when there are more false yeses or alarms: the exact search
    leaves out what such a bound excludes.
    """

    title: str
    value: Callable[[Counts], Floats]


def _f1_less_alarms(counts: Counts) -> Floats:
    return counts.f1 - ALARM_WEIGHT * counts.alarms / np.maximum(counts.quiet, 1)


def _accuracy_coverage(counts: Counts) -> Floats:
    # (right / answered) · (answered / asked)
    return _ratio(counts.hits, counts.positives + counts.negatives)


F1 = Objective("F1", lambda counts: counts.f1)
F1_LESS_ALARMS = Objective("F1 − 0.5 × false alarms", _f1_less_alarms)
ACCURACY_COVERAGE = Objective("accuracy × coverage", _accuracy_coverage)
"""For the confidence of a choice: of all that was asked, the share answered rightly."""
