"""The exact optimum without sorting everything: bound, then refine what can still win.

Scores fall into buckets by the top bits of an integer that keeps their order. Counts at bucket edges give the
objective there exactly; inside a bucket no cut can be better than "all its positives, none of its negatives and quiet
frames". Only buckets whose bound reaches the best edge are sorted. The result is that of `Sweep.optimum`, which is the
readable reference.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.thresholds.head import Head, Scores
from engines.thresholds.objectives import Counts, Ints
from engines.thresholds.plateau import LARGEST, Optimum, best_plateau
from engines.thresholds.sweep import Sweep, refuse_nan

BUCKET_BITS = 12
"""The histogram of 4 × 4096 cells stays in the processor's nearest cache, and cells are numbered in 16 bits."""
BLOCK = 1 << 15
"""Rows handled at a time, so that what is made of them stays in the processor's cache."""


def exact_optimum(head: Head) -> Optimum:
    """The best threshold over all distinct scores. Needs a positive and a negative.

    Raises `DataError` where a score is not a number.
    """
    scores = head.scores if head.scores.dtype in (np.float32, np.float64) else head.scores.astype(np.float64)
    lowest, highest = scores.min(), scores.max()
    if math.isnan(lowest):
        refuse_nan(scores)
    if math.isinf(lowest) or highest >= LARGEST:  # no finite threshold makes some cuts: no edge may count on one
        return Sweep(scores, head.targets, head.quiet).optimum(head.objective)
    buckets = _Buckets(lowest, highest)
    cells = _cells(buckets, scores, head)
    table = _table(cells, buckets.number)
    wanted = _can_win(table, head)
    rows = _rows(cells, wanted)
    inner = Sweep(scores[rows], head.targets[rows], None if head.quiet is None else head.quiet[rows])
    # what lies above a cut but was not sorted: whole buckets
    left_out = _from_above(np.where(wanted[:, None], 0, table))
    place = np.append(buckets.of(inner.scores.astype(scores.dtype)), buckets.number)
    yes = np.column_stack([inner.counts.hits, inner.counts.false_yes, inner.counts.alarms]) + left_out[place]
    return best_plateau(inner.scores, head.objective.value(_counts(yes, table)))


def order_keys(scores: Scores) -> NDArray[Any]:
    """Unsigned integers in the order of `scores: (n,)` (float32 or float64), equal where scores are: (n,)."""
    signed, unsigned = ("i4", "u4") if scores.dtype == np.float32 else ("i8", "u8")
    sign_bit = 8 * scores.dtype.itemsize - 1
    bits: NDArray[Any] = (scores + scores.dtype.type(0)).view(signed)  # −0.0 + 0 is 0.0, which it equals
    # of negative floats the larger bits are the smaller number: turn all but the sign around
    bits ^= (bits >> sign_bit) & np.iinfo(signed).max
    keys: NDArray[Any] = bits.view(unsigned)
    keys ^= keys.dtype.type(1 << sign_bit)
    return keys


class _Buckets:
    """Numbers up to 2 ** BUCKET_BITS in the order of the scores, by the top bits in which their keys differ."""

    def __init__(self, lowest: np.floating, highest: np.floating) -> None:
        self._lowest, last = order_keys(np.array([lowest, highest]))
        span = int(last - self._lowest)
        self._shift = self._lowest.dtype.type(max(0, span.bit_length() - BUCKET_BITS))
        self.number = (span >> int(self._shift)) + 1

    def of(self, scores: Scores) -> NDArray[np.uint16]:
        """The bucket of each score: (n,)."""
        buckets: NDArray[np.uint16] = ((order_keys(scores) - self._lowest) >> self._shift).astype(np.uint16)
        return buckets


def _cells(buckets: _Buckets, scores: Scores, head: Head) -> NDArray[np.uint16]:
    """(n,): four cells a bucket, by whether a frame is positive and whether it is quiet."""
    cells = np.empty(len(scores), np.uint16)
    for part in _blocks(len(scores)):
        cell = buckets.of(scores[part]) << 2
        cell |= head.targets[part]
        if head.quiet is not None:
            cell |= head.quiet[part].view(np.uint8) << 1
        cells[part] = cell
    return cells


def _blocks(rows: int) -> list[slice]:
    return [slice(start, start + BLOCK) for start in range(0, rows, BLOCK)]


def _table(cells: NDArray[np.uint16], buckets: int) -> Ints:
    """(buckets, 3): positives, negatives and quiet frames in each."""
    neither, positive, quiet, both = np.bincount(cells, minlength=4 * buckets).reshape(buckets, 4).T
    return np.column_stack([positive + both, neither + quiet, quiet + both])


def _rows(cells: NDArray[np.uint16], wanted: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The rows in wanted buckets; these mostly lie close together, so a comparison leaves out nearly all others."""
    first, last = np.flatnonzero(wanted)[[0, -1]].astype(np.uint16)
    near = np.flatnonzero((cells >= first << 2) & (cells <= (last << 2 | 3)))
    rows: NDArray[np.intp] = near[wanted[cells[near] >> 2]]
    return rows


def _can_win(table: Ints, head: Head) -> NDArray[np.bool_]:
    """(buckets,): those with a cut that may be the best.

    The plateau of an edge may end in the filled bucket below it, which is among them: its bound is at least the edge.
    """
    above = _from_above(table)
    best = head.objective.value(_counts(above, table)).max()
    bounds = _counts(np.column_stack([above[:-1, 0], above[1:, 1], above[1:, 2]]), table)
    wins: NDArray[np.bool_] = table[:, :2].any(axis=1) & (head.objective.value(bounds) >= best)
    return wins


def _from_above(table: Ints) -> Ints:
    """(buckets + 1, 3): sums over each bucket and all higher ones; the last row is 0."""
    sums = np.zeros((len(table) + 1, table.shape[1]), np.int64)
    np.cumsum(table[::-1], axis=0, out=sums[-2::-1])
    return sums


def _counts(yes: Ints, table: Ints) -> Counts:
    """Counts of `yes: (…, 3)` hits, false yeses and alarms among all that `table` holds."""
    return Counts(*yes.T, *table.sum(axis=0))
