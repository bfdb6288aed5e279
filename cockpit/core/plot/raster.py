"""Reduced curves as dots on a grid."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cockpit.core.plot.reduce import Columns
from cockpit.core.series import Floats

Dots = npt.NDArray[np.bool_]
DASHES = {"solid": (1, 0), "thin": (1, 0), "dashed": (4, 2), "dotted": (2, 2)}
"""Pixel columns drawn and left out, in turns."""
FLAT = 2
"""A dash leaves out only where a line is at most this many dots high, so that it never hides a spike."""


def rasterize(curve: Columns, columns: int, rows: int, low: float, high: float, dash: str) -> Dots:
    """`(rows, columns)` dots of a curve, `high` in the middle of the top row, `low` in that of the bottom one."""
    if not len(curve.place) or not rows:
        return np.zeros((rows, columns), dtype=np.bool_)

    def row(heights: Floats) -> Floats:
        share = (high - np.clip(heights, low, high)) / (high - low)
        return np.asarray(share * (rows - 1), dtype=np.float64)

    at, ups, downs = _joints(curve, row(curve.first), row(curve.last))
    place = np.concatenate([curve.place, at])
    top = np.concatenate([row(curve.high), ups])
    bottom = np.concatenate([row(curve.low), downs])
    # Each column's spans begin at +1 and end at -1; the running sum is positive inside.
    edges = np.zeros((rows + 1, columns), dtype=np.int32)
    np.add.at(edges, (np.rint(top).astype(np.int64), place), 1)
    np.add.at(edges, (np.rint(bottom).astype(np.int64) + 1, place), -1)
    dots: Dots = np.cumsum(edges[:-1], axis=0) > 0
    return _dashed(dots, curve, dash)


def _joints(curve: Columns, first: Floats, last: Floats) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Straight lines from each column's last value to the next one's first: a span in every column on the way."""
    to = np.flatnonzero(curve.joined)
    gaps = curve.place[to] - curve.place[to - 1]
    line = np.repeat(np.arange(len(to)), gaps + 1)
    step = np.arange(len(line)) - np.repeat(np.cumsum(gaps + 1) - (gaps + 1), gaps + 1)
    from_row, to_row, gap = last[to - 1][line], first[to][line], gaps[line]
    slope = (to_row - from_row) / np.maximum(gap, 1)
    # A column is crossed from half a column before its middle to half a column after, within the line's own ends.
    enter = from_row + slope * np.maximum(step - 0.5, 0)
    leave = from_row + slope * np.minimum(step + 0.5, gap)
    return curve.place[to - 1][line] + step, np.minimum(enter, leave), np.maximum(enter, leave)


def _dashed(dots: Dots, curve: Columns, dash: str) -> Dots:
    on, off = DASHES[dash]
    if not off:
        return dots
    columns = np.arange(dots.shape[1])
    keep = (columns % (on + off) < on) | (dots.sum(axis=0) > FLAT)
    after = np.append(curve.joined[1:], False)
    keep[curve.place[~curve.joined & ~after]] = True  # a lone point
    dashed: Dots = dots & keep
    return dashed
