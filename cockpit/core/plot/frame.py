"""What stands around the curves of a chart: frame, title, axes, marks, cursor, notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len

from cockpit.core.format import FOUR_DIGITS
from cockpit.core.plot.axis import AxisName, x_ticks
from cockpit.core.plot.cells import Cells
from cockpit.core.plot.glyphs import Glyphs
from cockpit.core.plot.groups import BAND, RUN_ROLES
from cockpit.core.plot.lines import Line
from cockpit.core.plot.scale import LABEL, Scale
from cockpit.core.series import Floats
from cockpit.core.text import fit_left

STYLES = (
    "frame", "title", "selected", "axis", "cursor", "bad", "checkpoint", "resume", "edit", "best",
    "old", "step", "train", "train-faint", "validation", "validation-faint", "test", "score", *RUN_ROLES,
    *(role + BAND for role in RUN_ROLES),
)  # fmt: skip
STYLE = {name: place for place, name in enumerate(STYLES)}
LEFT, RIGHT = LABEL + 2, 2
"""Columns left and right of the plot: the same in all charts, so that one place is one column in all of them."""
ABOVE, BELOW = 1, 2
VALUE = FOUR_DIGITS
SHORT = {"validation": "val", "step": ""}


@dataclass(frozen=True)
class Sign:
    """A mark on the x axis."""

    kind: str
    x: float


@dataclass(frozen=True)
class View:
    """The part of the axis that all charts show, and the place of the cursor."""

    axis: AxisName
    start: float
    end: float
    cursor: float | None = None
    ticks: tuple[tuple[float, str], ...] | None = None
    """Labels of places, where not the numbers of the axis."""
    log: bool = False
    """Whether places are decimal logarithms."""

    def column(self, x: float, columns: int) -> int:
        """The column of `columns` in which `x` lies; outside the view it is one outside."""
        place = int((x - self.start) / (self.end - self.start) * columns)
        return columns - 1 if x == self.end else place if x >= self.start else -1

    def place(self, column: int, columns: int) -> float:
        """The middle of a column."""
        return self.start + (self.end - self.start) * (column + 0.5) / columns


def plot_width(width: int) -> int:
    """Columns of the plot in a picture that wide."""
    return max(1, width - LEFT - RIGHT)


def draw_frame(cells: Cells, glyphs: Glyphs, style: int) -> None:
    rows, width = cells.texts.shape
    across = glyphs.across * max(width - 2, 0)
    for y, ends in ((0, glyphs.corners[:2]), (rows - 1, glyphs.corners[2:])):
        cells.write(0, y, ends[0] + across + ends[1], style)
    for y in range(1, rows - 1):
        cells.write(0, y, glyphs.down, style)
        cells.write(width - 1, y, glyphs.down, style)


def draw_title(cells: Cells, title: str, told: Sequence[tuple[Line, str]], glyphs: Glyphs, selected: bool) -> None:
    """The name at the left; values, each behind a sample of its line, at the right as far as there is room.

    Of several lines what each is, in full or short, where all of it has room; runs have their signs, and values where
    there is room for all of theirs: some of them would ask where the others are.
    """
    width = cells.texts.shape[1]
    x = width - 2
    name = title.split(" · ")[0]
    least = min(cell_len(name), 12) + 5
    shown = [
        (line, f" {glyphs.sample(line.style, line.dash)} {known}{value:>{VALUE}} ")
        for known, (line, value) in zip(_names([line for line, _ in told], x - least), told, strict=True)
    ]
    if x - sum(len(words) for _, words in shown) < least and any(line.style in RUN_ROLES for line, _ in shown):
        shown = []
    for line, words in reversed(shown):
        if x - len(words) < least:
            break
        x -= len(words)
        cells.write(x, 0, words, STYLE["axis" if line.style == "step" else line.style])  # words are no haze
    room = x - 5
    if cell_len(title) > room:  # what stands behind the name, cut, says nothing
        title = fit_left(name, max(room, 1)).rstrip()
    cells.write(2, 0, f" {title} ", STYLE["selected" if selected else "title"])


def _names(lines: Sequence[Line], room: int) -> list[str]:
    """What to call lines in a title that has so much room for names and values."""
    told = [line.name if len(lines) > 1 and line.style not in RUN_ROLES else "" for line in lines]
    for names in (told, [SHORT.get(name, name) for name in told]):
        words = [f"{name} " if name else "" for name in names]
        if sum(len(word) + VALUE + 4 for word in words) <= room:
            return words
    return [""] * len(lines)


def draw_y_axis(cells: Cells, scale: Scale, plot_rows: int, glyphs: Glyphs) -> None:
    for y in range(plot_rows):
        cells.write(LEFT - 1, ABOVE + y, glyphs.down, STYLE["frame"])
    for at, label in scale.ticks:
        y = ABOVE + round((scale.high - at) / (scale.high - scale.low) * (plot_rows - 1))
        cells.write(LEFT - 1 - LABEL, y, label[:LABEL].rjust(LABEL), STYLE["axis"])
        cells.write(LEFT - 1, y, glyphs.tick, STYLE["frame"])
    if scale.power:
        cells.write(LEFT - 1 - LABEL, ABOVE + plot_rows, f"×1e{scale.power}".rjust(LABEL), STYLE["axis"])


def draw_x_axis(cells: Cells, view: View, columns: int, glyphs: Glyphs, free: int = 0) -> None:
    """Labels go into the lower edge of the frame, from the column `free` on: a row more for the curve."""
    rows = cells.texts.shape[0]
    cells.write(LEFT - 1, rows - 2, glyphs.origin + glyphs.across * columns, STYLE["frame"])
    ticks = view.ticks or x_ticks(view.axis, view.start, view.end, max(2, columns // 8), log=view.log)
    for x, label in ticks:
        column = view.column(x, columns)
        if not 0 <= column < columns:
            continue
        left = LEFT + column - len(label) // 2
        if left - 1 >= free and left + len(label) < LEFT + columns + 1:
            cells.write(LEFT + column, rows - 2, glyphs.mark, STYLE["frame"])
            cells.write(left - 1, rows - 1, f" {label} ", STYLE["axis"])
            free = left + len(label) + 1


def draw_cursor(cells: Cells, view: View, columns: int, glyphs: Glyphs) -> None:
    if view.cursor is None or not 0 <= (column := view.column(view.cursor, columns)) < columns:
        return
    for y in range(ABOVE, cells.texts.shape[0] - BELOW):
        if cells.texts[y, LEFT + column] == " ":
            cells.write(LEFT + column, y, glyphs.cursor, STYLE["cursor"])


def draw_signs(cells: Cells, signs: Sequence[Sign], view: View, columns: int, glyphs: Glyphs) -> None:
    """Later ones over earlier ones."""
    for sign in signs:
        if 0 <= (column := view.column(sign.x, columns)) < columns:
            cells.write(LEFT + column, cells.texts.shape[0] - BELOW, glyphs.signs[sign.kind], STYLE[sign.kind])


def bad_places(lines: Sequence[Line], view: View, columns: int) -> list[Sign]:
    """A sign in every column that holds a value which is not finite."""
    edges = np.linspace(view.start, view.end, columns + 1)
    marked = np.zeros(columns, dtype=np.bool_)
    for line in lines:
        bounds = np.searchsorted(line.bad, edges)
        bounds[-1] = np.searchsorted(line.bad, view.end, "right")
        marked |= np.diff(bounds) > 0
    return [Sign("bad", view.place(column, columns)) for column in np.flatnonzero(marked).tolist()]


def _count(places: Floats, view: View) -> int:
    """How many of `places`, ascending, are in view."""
    return int(np.searchsorted(places, view.end, "right") - np.searchsorted(places, view.start, "left"))


def draw_note(cells: Cells, lines: Sequence[Line], view: View) -> None:
    """What is in view but cannot be drawn, counted, at the right of the lower edge."""
    bad = sum(_count(line.bad, view) for line in lines if not line.behind)
    hidden = sum(_count(line.hidden, view) for line in lines if not line.behind)
    words = [f"{bad:,} not finite"] * bool(bad) + [f"{hidden:,} not above 0"] * bool(hidden)
    if words:
        text = " " + " · ".join(words) + " "
        cells.write(cells.texts.shape[1] - 2 - len(text), cells.texts.shape[0] - 1, text, STYLE["bad"])


def draw_legend(cells: Cells, signs: Sequence[Sign], glyphs: Glyphs) -> int:
    """What the signs on the axis mean, at the left of the lower edge; gives the column after it, 0 without signs."""
    x = 2
    for kind in dict.fromkeys(sign.kind for sign in signs):
        words = f" {glyphs.signs[kind]} {kind} "
        cells.write(x, cells.texts.shape[0] - 1, words, STYLE[kind])
        x += len(words)
    return x if signs else 0
