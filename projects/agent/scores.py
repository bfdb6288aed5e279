"""How good predictions are: of rewards and of actions, for the run and its baselines alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""97.5 % quantiles of Student's t for 1 to 30 degrees of freedom."""


def auc(chances: Floats, happened: Bools) -> float | None:
    """Area under the ROC curve of `chances: (n,)`, ties counted half; None where all or none `happened`."""
    positive = int(happened.sum())
    negative = len(happened) - positive
    if not positive or not negative:
        return None
    _, which, counts = np.unique(chances, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[which]
    return float((ranks[happened].sum() - positive * (positive + 1) / 2) / (positive * negative))


def r2(predicted: Floats, true: Floats) -> float | None:
    """Share of the variance of `true: (n,)` that is explained; None where it has none."""
    if len(true) < 2 or not (spread := float(((true - true.mean()) ** 2).sum())):
        return None
    return 1 - float(((true - predicted) ** 2).sum()) / spread


def share(right: Bools, counted: Bools) -> float | None:
    """Of those that are `counted` how many are `right`; None where none is."""
    return float(right[counted].mean()) if counted.any() else None


def changes(movement: Ints, acted: Bools) -> Bools:
    """Frames whose movement differs from that of the frame before, both known: (games, time), the first never."""
    changed = np.zeros(movement.shape, bool)
    changed[:, 1:] = (movement[:, 1:] != movement[:, :-1]) & acted[:, 1:] & acted[:, :-1]
    return changed & (movement >= 0)


def interval(values: Sequence[float] | Floats) -> tuple[float, float]:
    """The mean of independent `values`, and half of its 95 % t interval (0 for fewer than two)."""
    array = np.asarray(values, np.float64)
    if len(array) < 2:
        return float(array.mean()), 0.0
    quantile = T95[len(array) - 2] if len(array) - 2 < len(T95) else 1.96 + 2.4 / (len(array) - 1)
    return float(array.mean()), float(quantile * array.std(ddof=1) / np.sqrt(len(array)))
