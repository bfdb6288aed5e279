"""De-biased exponential smoothing that never changes the past and leaves a constant constant."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from cockpit.core.series import Floats

ROW = 16
"""Values averaged one after the other; rows of so many are averaged side by side."""
BLOCK = 1 << 16
"""Values that go through every step together: so many stay in the processor's cache."""
UNBIASED = 1e-17
"""Share of weight that may miss without changing a sum of double precision."""


class Smoother:
    """Smooths a series that grows: what was smoothed stays, what is new is added.

    The k-th finite value gives `sum(w^(k-i) y_i) / sum(w^(k-i))`, i = 1 … k: the usual average with its bias towards
    its start taken out. A value that is not finite is bridged: it stays as it is, the average goes on behind it as if
    it had not been there. (Starting again would show the noise of a first value behind every gap.)
    """

    def __init__(self, weight: float) -> None:
        """`weight` of the past, at least 0 and below 1."""
        self._weight = weight
        self._forget()

    def _forget(self) -> None:
        self._raw = self._smooth = np.empty(0)
        self._count = 0
        self._sum = 0.0
        self._origin = 0.0

    def smooth(self, y: Floats) -> Floats:
        """`y: (n,)` smoothed: `(n,)`. A `y` that continues the last one costs only what is new."""
        known = len(self._raw)
        if len(y) < known or not np.array_equal(y[:known], self._raw, equal_nan=True):
            self._forget()
            known = 0
        if len(y) > known:
            new = self._go_on(y[known:])
            self._smooth = np.concatenate([self._smooth, new]) if known else new
        self._raw = y
        return self._smooth

    def _go_on(self, new: Floats) -> Floats:
        finite = np.isfinite(new)
        if not finite.all():
            smooth = new.copy()
            smooth[finite] = self._go_on(new[finite])
            return smooth
        smooth = np.empty(len(new))
        for first in range(0, len(new), BLOCK):
            smooth[first : first + BLOCK] = self._average(new[first : first + BLOCK])
        return smooth

    def _average(self, y: Floats) -> Floats:
        """The next averages, after `y: (m,)`, all finite, m > 0. Later values touch no earlier ones."""
        if not self._count:
            self._origin = float(y[0])
        # Averages of what lies between the values and the first one, so that a constant is exactly that constant; of
        # half of it, so that no number is too large.
        averages = self._sums(y * 0.5 - self._origin * 0.5)
        self._sum = float(averages[-1])
        if biased := self._biased(len(y)):
            averages[:biased] /= 1 - self._weight ** np.arange(self._count + 1.0, self._count + 1 + biased)
        self._count += len(y)
        return self._origin + averages + averages

    def _sums(self, y: Floats) -> Floats:
        """`s_k = w s_(k-1) + (1 - w) y_k`, going on from the last sum: `(m,)`.

        In rows of `ROW` values: each from zero, all rows at once, a value a time; then what each carries from the rows
        before it, which by then weighs `w^1 … w^ROW`.
        """
        weight, whole = self._weight, len(y) // ROW
        columns = np.zeros((ROW, -(-len(y) // ROW)))
        np.multiply(y[: whole * ROW].reshape(whole, ROW).T, 1 - weight, out=columns[:, :whole])
        if rest := len(y) - whole * ROW:
            columns[:rest, whole] = y[whole * ROW :] * (1 - weight)
        past = np.empty(columns.shape[1])
        for before, column in pairwise(columns[: len(y)]):
            column += np.multiply(before, weight, out=past)
        past[0], past[1:] = self._sum, columns[-1, :-1]
        columns += np.multiply.outer(weight ** np.arange(1.0, ROW + 1), _carried(past, weight**ROW))
        return columns.T.reshape(-1)[: len(y)]

    def _biased(self, new: int) -> int:
        """Of how many of the `new` next values the weights do not add up to one."""
        if not self._weight:
            return 0
        return min(max(math.ceil(math.log(UNBIASED) / math.log(self._weight)) - self._count, 0), new)


def _carried(new: Floats, decay: float) -> Floats:
    """`c_k = new_k + decay c_(k-1)`, `(m,)`: of one row before, then of two, four, …"""
    carried, reach = new.copy(), 1
    while reach < len(carried) and decay:
        carried[reach:] += decay * carried[:-reach]
        decay, reach = decay * decay, 2 * reach
    return carried
