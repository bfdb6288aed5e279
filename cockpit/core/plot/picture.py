"""One chart as characters: its curves within their frame."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cockpit.core import braille
from cockpit.core.format import four_digits
from cockpit.core.plot.cells import Cells
from cockpit.core.plot.frame import (
    ABOVE,
    BELOW,
    LEFT,
    RIGHT,
    STYLE,
    Sign,
    View,
    bad_places,
    draw_cursor,
    draw_frame,
    draw_legend,
    draw_note,
    draw_signs,
    draw_title,
    draw_x_axis,
    draw_y_axis,
    plot_width,
)
from cockpit.core.plot.glyphs import UNICODE, Glyphs
from cockpit.core.plot.groups import BAND
from cockpit.core.plot.lines import Line, nearest
from cockpit.core.plot.raster import rasterize
from cockpit.core.plot.reduce import Columns, reduce
from cockpit.core.plot.scale import LARGEST, Ends, Scale, fit_scale, height
from cockpit.core.series import Floats

SIGN_COLUMNS = 24
RARE = 5
"""Percent of the steps behind epochs, at either end, that may be out of range: they are drawn at the edge."""


def paint(
    title: str, lines: Sequence[Line], signs: Sequence[Sign], view: View, size: tuple[int, int], glyphs: Glyphs,
    *, log: bool = False, trimmed: bool = False, ends: Ends = (None, None), selected: bool = False,
    legend: bool = False,
) -> Cells:  # fmt: skip
    """The picture, `size` (width, height) characters large; too small a one is only a frame.

    `ends` are the values at the lower and the upper edge, where these are not to follow from the lines.
    """
    width, rows = size
    cells = Cells.blank(width, rows)
    columns, plot_rows = plot_width(width), rows - ABOVE - BELOW
    draw_frame(cells, glyphs, STYLE["selected" if selected else "frame"])
    draw_title(cells, title, values(lines, view, columns), glyphs, selected)
    if width < LEFT + RIGHT + 4 or plot_rows < 2:
        return cells
    if not any(len(line.x) for line in lines):
        _say(cells, "no value yet")  # and no axis: its ends would be made up
        return cells
    curves = [reduce(line.points, columns * glyphs.dots_wide, view.start, view.end) for line in lines]
    draw_x_axis(cells, view, columns, glyphs, draw_legend(cells, signs, glyphs) if legend else 0)
    bands = [(line.style, _in_view(line.band, view, columns * glyphs.dots_wide)) for line in lines if line.band]
    scale = _scale(lines, curves, [band for _, band in bands], plot_rows, log, trimmed, ends)
    if scale is None:
        _say(cells, "no finite values here")
    else:
        draw_y_axis(cells, scale, plot_rows, glyphs)
        for style, band in bands:
            _draw_band(cells, style, band, scale, glyphs)
        for line, curve in zip(lines, curves, strict=True):
            _draw(cells, line, curve, scale, glyphs)
    draw_cursor(cells, view, columns, glyphs)
    draw_signs(cells, [*bad_places(lines, view, columns), *signs], view, columns, glyphs)
    draw_note(cells, lines, view)
    return cells


def _say(cells: Cells, words: str) -> None:
    rows, width = cells.texts.shape
    cells.write((width - len(words)) // 2, rows // 2, words, STYLE["axis"])


def values(lines: Sequence[Line], view: View, columns: int) -> list[tuple[Line, str]]:
    """What each line says at the cursor, or last; a dash where it has no point there."""
    return [(line, _value(line, view, columns)) for line in lines if not line.behind]


def _value(line: Line, view: View, columns: int) -> str:
    if not len(line.x):
        return "—"
    place = len(line.x) - 1
    if view.cursor is not None:
        column = (view.end - view.start) / columns
        if not line.x[0] - column <= view.cursor <= line.x[-1] + column:
            return "—"
        place = nearest(line, view.cursor)
    return four_digits(float(line.raw[place]))


def _in_view(band: tuple[Floats, Floats, Floats], view: View, columns: int) -> Columns:
    """The edges of a band at each pixel column that it reaches."""
    x, low, high = band
    at = view.start + (view.end - view.start) * (np.arange(columns) + 0.5) / columns
    place = np.flatnonzero((at >= x[0]) & (at <= x[-1])) if len(x) else np.empty(0, dtype=np.int64)
    lower, upper = (np.interp(at[place], x, edge) if len(x) else np.empty(0) for edge in (low, high))
    return Columns(place, lower, lower, upper, upper, np.zeros(len(place), dtype=np.bool_))


def _draw_band(cells: Cells, style: str, band: Columns, scale: Scale, glyphs: Glyphs) -> None:
    """Every second dot between the edges, behind all lines."""
    rows, width = cells.texts.shape
    columns, plot_rows = plot_width(width), rows - ABOVE - BELOW
    dots = rasterize(
        band, columns * glyphs.dots_wide, plot_rows * glyphs.dots_high,
        max(scale.low, -LARGEST), min(scale.high, LARGEST), "thin",
    )  # fmt: skip
    down, across = np.indices(dots.shape)
    dots &= (down + across) % 2 == 0
    codes = braille.characters(dots) if glyphs is UNICODE else dots * np.uint32(ord(glyphs.samples["thin"]))
    there = codes > 0
    plot = (slice(ABOVE, ABOVE + plot_rows), slice(LEFT, LEFT + columns))
    cells.texts[plot][there] = codes[there].view("U1")
    cells.styles[plot][there] = STYLE[style + BAND]


def _scale(
    lines: Sequence[Line], curves: Sequence[Columns], bands: Sequence[Columns], plot_rows: int, log: bool,
    trimmed: bool, ends: Ends,
) -> Scale | None:  # fmt: skip
    """Of everything in view but raw values behind smoothed ones, and of the limits; None where there is nothing."""
    drawn = [(line, curve) for line, curve in zip(lines, curves, strict=True) if len(curve.low)]
    telling = [(line, curve) for line, curve in drawn if not line.raw_behind] or drawn
    ranges = [_range(line, curve, trimmed) for line, curve in telling]
    ranges += [(float(band.low.min()), float(band.high.max())) for band in bands if len(band.low)]
    if not ranges:
        return None
    limits = [end for line, _ in telling for end in line.limits if end is not None and not log]
    low = min(*(low for low, _ in ranges), *limits, math.inf)
    high = max(*(high for _, high in ranges), *limits, -math.inf)
    bottom, top = (None if end is None else _height(end, log) for end in ends)
    return fit_scale(low, high, max(3, plot_rows // 3), log, bottom=bottom, top=top)


def _height(value: float, log: bool) -> float | None:
    """Of an end that was set; None where the scale has no place for it."""
    on_scale = float(height(np.array([value]), log)[0])
    return on_scale if math.isfinite(on_scale) else None


def _range(line: Line, curve: Columns, trimmed: bool) -> tuple[float, float]:
    """Lowest and highest; of every step behind epochs without what is rare, or wild steps would flatten these.

    So of all lines where the chart is `trimmed`.

    Steps are sampled, two a column: of a column's highest and lowest none would be rare.
    """
    if line.name != "step" and not trimmed:
        return float(curve.low.min()), float(curve.high.max())
    low, high = np.percentile([curve.first, curve.last], (RARE, 100 - RARE))
    return float(low), float(high)


def _draw(cells: Cells, line: Line, curve: Columns, scale: Scale, glyphs: Glyphs) -> None:
    """Where lines share a character it shows the later one alone; through the gaps of its dashes shows the other."""
    rows, width = cells.texts.shape
    columns, plot_rows = plot_width(width), rows - ABOVE - BELOW
    dots = rasterize(
        curve, columns * glyphs.dots_wide, plot_rows * glyphs.dots_high,
        max(scale.low, -LARGEST), min(scale.high, LARGEST), line.dash,
    )  # fmt: skip
    codes = braille.characters(dots) if glyphs is UNICODE else dots * np.uint32(ord(glyphs.samples[line.dash]))
    there = codes > 0
    plot = (slice(ABOVE, ABOVE + plot_rows), slice(LEFT, LEFT + columns))
    cells.texts[plot][there] = codes[there].view("U1")
    cells.styles[plot][there] = STYLE[line.style]
    if not line.behind:
        _put_lone_points(cells.texts[plot], there, curve, glyphs)
    if sign := glyphs.run_sign(line.style):
        _put_signs(cells.texts[plot], there, sign, glyphs.runs.index(sign))


def _put_lone_points(texts: npt.NDArray[np.str_], there: npt.NDArray[np.bool_], curve: Columns, glyphs: Glyphs) -> None:
    """A point without a neighbour to be joined with is a sign, or it would not be seen."""
    lone = curve.place[~curve.joined & ~np.append(curve.joined[1:], False)]
    for column in np.unique(lone // glyphs.dots_wide).tolist():
        for row in np.flatnonzero(there[:, column])[:1].tolist():
            texts[row, column] = glyphs.lone


def _put_signs(texts: npt.NDArray[np.str_], there: npt.NDArray[np.bool_], sign: str, place: int) -> None:
    """A run's sign on its line every `SIGN_COLUMNS`, each run's at columns of its own, and on its last point."""
    drawn = np.flatnonzero(there.any(axis=0))
    wanted = np.arange(place * 3 % SIGN_COLUMNS, there.shape[1], SIGN_COLUMNS)
    after = np.searchsorted(drawn, wanted[wanted <= drawn[-1]]) if len(drawn) else []  # a dash may leave out the wanted
    for column in {*drawn[after].tolist(), *drawn[-1:].tolist()}:
        texts[np.flatnonzero(there[:, column])[0], column] = sign
