"""Whether predicted probabilities are frequencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BINS = 10
Reals = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Bin:
    """Predictions from `low` on: how many, their mean, and how often what they predict came about."""

    low: float
    count: int
    predicted: float | None
    observed: float | None


def reliability(probabilities: Reals, on: Bools) -> tuple[Bin, ...]:
    """Ten bins of equal width; the last one includes 1. probabilities, on: (n,)."""
    place = np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)
    counts = np.bincount(place, minlength=BINS)
    sums = (np.bincount(place, weights, minlength=BINS) for weights in (probabilities, on))
    return tuple(
        Bin(k / BINS, int(n), *((float(p / n), float(y / n)) if n else (None, None)))
        for k, (n, p, y) in enumerate(zip(counts, *sums, strict=True))
    )


@dataclass(frozen=True)
class Calibration:
    """Probabilities of one event; None without any.

    mean: mean probability. brier: mean squared distance of probability and outcome. ece: expected calibration error,
    the mean over predictions of the distance between predicted and observed frequency in the prediction's bin.
    """

    mean: float | None
    brier: float | None
    ece: float | None

    @classmethod
    def of(cls, probabilities: Reals, on: Bools) -> Calibration:
        """probabilities, on: (n,)."""
        return cls(average(probabilities), average((probabilities - on) ** 2), _ece(probabilities, on))


def average(values: Reals | Bools) -> float | None:
    """None without any."""
    return float(np.mean(values)) if values.size else None


def _ece(probabilities: Reals, on: Bools) -> float | None:
    if not len(on):
        return None
    gaps = (one.count * abs((one.predicted or 0) - (one.observed or 0)) for one in reliability(probabilities, on))
    return sum(gaps) / len(on)
