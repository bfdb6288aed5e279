"""A curve reduced to what pixel columns can show: of each its first, lowest, highest and last value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cockpit.core.metric_series import Floats

Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Columns:
    """The pixel columns that hold a finite value, from left to right; all arrays are `(m,)`."""

    place: Places
    """Number of the pixel column, from 0."""
    first: Floats
    low: Floats
    high: Floats
    last: Floats
    joined: Flags
    """Whether no value that is not finite lies between this column's first and the last of the one before."""


def reduce(x: Floats, y: Floats, columns: int, start: float, end: float) -> Columns:
    """Reduce `x, y: (n,)`, x finite and ascending, to `columns` equal parts of [start, end], the last one closed.

    A line that comes from outside enters where it crosses the edge. A spike of one value shows however many share its
    column. Time: two searches and a few passes over the values inside.
    """
    x, y = _inside(x, y, start, end)
    whole = all_finite(y)
    if not whole:
        y = np.where(np.isfinite(y), y, np.nan)
    edges = start + (end - start) / columns * np.arange(1, columns)
    bounds = np.concatenate([[0], np.searchsorted(x, edges), [len(x)]])
    full = np.flatnonzero(np.diff(bounds))
    if not len(full):
        return Columns(full, y, y, y, y, np.empty(0, dtype=np.bool_))
    starts, stops = bounds[full], bounds[full + 1]
    low, high = np.fmin.reduceat(y, starts), np.fmax.reduceat(y, starts)  # a column of NaN alone gives NaN
    first, last = starts, stops - 1
    if not whole:
        places, good = np.arange(len(y)), ~np.isnan(y)
        first = np.minimum.reduceat(np.where(good, places, len(y)), starts)
        last = np.maximum.reduceat(np.where(good, places, -1), starts)
    # Columns between two neighbours of `full` hold no points at all, so only these two can break the line.
    some = ~np.isnan(low)
    joined = np.zeros(len(full), dtype=np.bool_)
    joined[1:] = (last == stops - 1)[:-1] & (first == starts)[1:] & some[:-1] & some[1:]
    kept = np.flatnonzero(some)
    return Columns(full[kept], y[first[kept]], low[kept], high[kept], y[last[kept]], joined[kept])


def all_finite(y: Floats) -> bool:
    """Whether all values are finite, by one quick pass; False also where finite ones add up to infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(y.sum()))


def _inside(x: Floats, y: Floats, start: float, end: float) -> tuple[Floats, Floats]:
    """The points in [start, end], with the line's crossings of both edges."""
    first, stop = int(np.searchsorted(x, start, "left")), int(np.searchsorted(x, end, "right"))
    if first == 0 and stop == len(x):
        return x, y
    before = [_crossing(x, y, first, start)] if 0 < first < len(x) else []
    after = [_crossing(x, y, stop, end)] if 0 < stop < len(x) else []
    at_edges = np.array([start] * len(before)), np.array([end] * len(after))
    return (
        np.concatenate([at_edges[0], x[first:stop], at_edges[1]]),
        np.concatenate([before, y[first:stop], after]),
    )


def _crossing(x: Floats, y: Floats, place: int, at: float) -> float:
    """Height of the line from the point before `place` to that at `place`, where it crosses `at`."""
    with np.errstate(invalid="ignore", over="ignore"):
        share = (at - x[place - 1]) / (x[place] - x[place - 1])
        return float(y[place - 1] + (y[place] - y[place - 1]) * share)
