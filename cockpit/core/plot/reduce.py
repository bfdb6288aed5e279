"""A curve reduced to what pixel columns can show: of each its first, lowest, highest and last value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cockpit.core.series import Floats

Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Points:
    """What of a curve can be drawn, `(n,)` each: finite values, x ascending."""

    x: Floats
    y: Floats
    gap: Flags
    """Whether something that is not finite lies right before a point."""


def points_of(x: Floats, y: Floats) -> Points:
    """The finite values of `y` at `x: (n,)`, finite and ascending, with the gaps that the others leave."""
    finite = np.isfinite(y)
    if finite.all():
        return Points(x, y, np.zeros(len(y), dtype=np.bool_))
    there = np.flatnonzero(finite)
    return Points(x[there], y[there], np.diff(there, prepend=-1) > 1)


@dataclass(frozen=True, eq=False)
class Columns:
    """The pixel columns that hold a value, from left to right; all arrays are `(m,)`."""

    place: Places
    """Number of the pixel column, from 0."""
    first: Floats
    low: Floats
    high: Floats
    last: Floats
    joined: Flags
    """Whether the line goes on unbroken from the last value of the column before to this one's first."""


def reduce(points: Points, columns: int, start: float, end: float) -> Columns:
    """Reduce a curve to `columns` equal parts of [start, end], the last one closed.

    A line that comes from outside enters where it crosses the edge. A spike of one value shows however many share its
    column. Time: two searches and two passes over the values inside.
    """
    inside = _inside(points, start, end)
    edges = start + (end - start) / columns * np.arange(1, columns)
    bounds = np.concatenate([[0], np.searchsorted(inside.x, edges), [len(inside.x)]])
    full = np.flatnonzero(np.diff(bounds))
    first, last, y = bounds[full], bounds[full + 1] - 1, inside.y
    if not len(full):
        return Columns(full, y, y, y, y, inside.gap)
    joined = ~inside.gap[first]
    joined[0] = False
    low, high = np.minimum.reduceat(y, first), np.maximum.reduceat(y, first)
    return Columns(full, y[first], low, high, y[last], joined)


def _inside(points: Points, start: float, end: float) -> Points:
    """The points in [start, end], with the line's crossings of both edges."""
    x, y, gap = points.x, points.y, points.gap
    first, stop = int(np.searchsorted(x, start, "left")), int(np.searchsorted(x, end, "right"))
    if first == 0 and stop == len(x):
        return points
    before = [(start, _crossing(points, first, start))] if 0 < first < len(x) and not gap[first] else []
    after = [(end, _crossing(points, stop, end))] if 0 < stop < len(x) and not gap[stop] else []
    return Points(
        np.concatenate([[at for at, _ in before], x[first:stop], [at for at, _ in after]]),
        np.concatenate([[value for _, value in before], y[first:stop], [value for _, value in after]]),
        np.concatenate([[False] * len(before), gap[first:stop], [False] * len(after)]).astype(np.bool_),
    )


def _crossing(points: Points, place: int, at: float) -> float:
    """Height of the line from the point before `place` to that at `place`, where it crosses `at`."""
    left, right = points.x[place - 1], points.x[place]
    share = (at - left) / (right - left)
    return float(points.y[place - 1] * (1 - share) + points.y[place] * share)
