"""De-biased exponential smoothing that never changes the past and leaves a constant constant."""

from __future__ import annotations

import math

import numpy as np

from cockpit.core.metric_series import Floats

NEGLIGIBLE = 1e-30
"""Weight below which a value counts no more."""
BLOCK = 1 << 14
"""Values averaged at once: they stay in the processor's cache over all rounds."""


class Smoother:
    """Smooths a series that grows: what was smoothed stays, what is new is added.

    The k-th finite value gives `sum(w^(k-i) y_i) / sum(w^(k-i))`, i = 1 … k: the usual average with its bias towards
    its start taken out. A value that is not finite is bridged: it stays as it is, the average goes on behind it as if
    it had not been there. (Starting anew would show the noise of a first value behind every gap.)
    """

    def __init__(self, weight: float) -> None:
        """`weight` of the past, at least 0 and below 1."""
        self._weight = weight
        self._forget()

    def _forget(self) -> None:
        self._raw = self._smooth = np.empty(0)
        self._count = 0
        self._sum = 0.0
        self._low, self._high = math.inf, -math.inf

    def smooth(self, y: Floats) -> Floats:
        """`y: (n,)` smoothed: `(n,)`. A `y` that continues the last one costs only what is new."""
        known = len(self._raw)
        if len(y) < known or not np.array_equal(y[:known], self._raw, equal_nan=True):
            self._forget()
            known = 0
        if len(y) > known:
            self._smooth = np.concatenate([self._smooth, self._go_on(y[known:])])
        self._raw = y
        return self._smooth

    def _go_on(self, new: Floats) -> Floats:
        finite = np.isfinite(new)
        smooth = new.copy()
        values = new[finite]
        blocks = [self._average(values[first : first + BLOCK]) for first in range(0, len(values), BLOCK)]
        smooth[finite] = np.concatenate([np.empty(0), *blocks])
        return smooth

    def _average(self, y: Floats) -> Floats:
        """The next averages, after `y: (m,)`, all finite, m > 0. Elementwise: later values touch no earlier ones."""
        weight = self._weight
        sums = y * (1 - weight)
        sums[0] += weight * self._sum
        shift = 1
        while shift < len(sums) and weight**shift > NEGLIGIBLE:  # each round doubles how far back a sum reaches
            sums[shift:] += sums[:-shift] * weight**shift
            shift *= 2
        total = 1 - weight ** np.arange(self._count + 1.0, self._count + 1 + len(y)) if self._biased else 1.0
        # An average lies within what it averages; rounding must not push it out, or a constant would tremble.
        low = np.minimum.accumulate(np.minimum(y, self._low))
        high = np.maximum.accumulate(np.maximum(y, self._high))
        self._count += len(y)
        self._sum, self._low, self._high = float(sums[-1]), float(low[-1]), float(high[-1])
        return np.clip(sums / total, low, high)

    @property
    def _biased(self) -> bool:
        """Whether the weights of what came so far do not add up to one yet."""
        return self._weight ** (self._count + 1) > 1e-17
