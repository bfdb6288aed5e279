"""Panels and the timeline of a scene as rows of cells: gauges, words, and what lies where along the session."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.cells import cell_len

from cockpit.core.scenes.cells import BLANK, Cell, Row
from cockpit.core.text import cells_of, plain
from engines.contract.scenes import Gauge, Panel, Span, Strip, Words

NARROWEST = 22
"""Cells that a gauge needs: rows go beside each other where there are too many for the height and room for two."""
NUMBER_FROM = 40
"""Cells from which on a gauge's value is written out too."""
GAP = 2
LABEL_SHARE = 0.4
"""Of a row's width, at most."""
LEVELS = " ▁▂▃▄▅▆▇█"


def cells(text: str, kind: str) -> Row:
    """`text` from an engine as cells, safe for a terminal; a wide character has an empty cell after it.

    Marks without a width of their own are left out: terminals disagree on where they go.
    """
    return [(sign[:1], kind) for sign in cells_of(plain(text))]


def fit(row: Row, width: int) -> Row:
    """`row` in exactly `width` cells."""
    row = row[:width] + [BLANK] * (width - len(row))
    if row and cell_len(row[-1][0]) > 1:
        row[-1] = BLANK  # the other half did not fit
    return row


def draw_panel(panel: Panel, width: int, height: int) -> list[Row]:
    """The rows of `panel` in `height` rows of `width` cells, in two columns where one is too short for them."""
    if width < 1 or height < 1:
        return []
    columns = 2 if len(panel.rows) > height and width >= 2 * NARROWEST + GAP else 1
    inner = (width - GAP * (columns - 1)) // columns
    per_column = math.ceil(len(panel.rows) / columns)
    labels = [len(cells(row.label, "")) for row in panel.rows if isinstance(row, Gauge)]
    label_width = min(max(labels, default=0), int(inner * LABEL_SHARE))
    drawn = [_row(row, inner, label_width) for row in panel.rows]
    parts = [drawn[start : start + per_column] for start in range(0, len(drawn), per_column)] if drawn else []
    rows = []
    for line in range(height):
        row: Row = []
        for part in parts:
            row += part[line] if line < len(part) else fit([], inner)
            row += [BLANK] * GAP
        rows.append(fit(row, width))
    return rows


def _row(row: Words | Gauge, width: int, label_width: int) -> Row:
    if isinstance(row, Words):
        return fit(_spans(row.spans), width)
    kind = "bad" if row.differs else "quiet"
    label = cells(row.label, kind)
    if len(label) > label_width > 0:
        label = [*fit(label, label_width - 1), ("…", kind)]
    label = fit(label, label_width)
    head = [*label, BLANK, *_spans(row.signs), BLANK]
    number = cells("      " if row.value is None else f" {row.value:5.2f}", "plain") if width >= NUMBER_FROM else []
    return fit(head + _bar(row, max(0, width - len(head) - len(number) - 2)) + number + _difference(row), width)


def _spans(spans: Sequence[Span]) -> Row:
    return [cell for span in spans for cell in cells(span.text, span.kind)]


def _difference(gauge: Gauge) -> Row:
    """What is not the same is shown by a sign too, never by colour alone."""
    return [BLANK, ("≠", "bad")] if gauge.differs else []


def _bar(gauge: Gauge, width: int) -> Row:
    """A bar from zero to the value, with the mark and the other value on it."""
    bar: Row = [("·", "faint")] * width
    value = None if gauge.value is None else _place(gauge.value, gauge, width)
    if value is not None:
        zero = _place(min(max(0.0, gauge.low), gauge.high), gauge, width) or 0.0
        for column in range(width):
            if min(zero, value) <= column + 0.5 < max(zero, value):
                bar[column] = ("█", gauge.kind)
    for number, sign, kind in ((gauge.mark, "│", "plain"), (gauge.other, "◆", "first")):
        if number is not None and width and (place := _place(number, gauge, width)) is not None:
            bar[min(int(place), width - 1)] = (sign, kind)
    return bar


def _place(number: float, gauge: Gauge, width: int) -> float | None:
    """Where `number` lies on a bar of `width` cells; None where the gauge has no extent."""
    if not gauge.high > gauge.low or not math.isfinite(gauge.high - gauge.low):
        return None
    return min(max((number - gauge.low) / (gauge.high - gauge.low), 0.0), 1.0) * width


def draw_strip(strip: Strip | None, position: int, total: int, width: int) -> list[Row]:
    """Two rows: the levels along the session, and a line that shows where in it the scene is."""
    ruler: Row = [("─", "faint")] * width
    if total > 0 and width:
        done = min(int(position / max(1, total - 1) * (width - 1) + 0.5), width - 1)
        ruler[:done] = [("━", "accent")] * done
        ruler[done] = ("█", "accent")
    levels = [_level(strip.levels if strip else [], column, width) for column in range(width)]
    return [[_sign(level) for level in levels], ruler]


def _level(levels: Sequence[float], column: int, width: int) -> float:
    """The highest level of the stretch that a column stands for, so that nothing is lost where it is narrow."""
    start = column * len(levels) // width
    end = max(start + 1, (column + 1) * len(levels) // width)
    return min(max(max(levels[start:end], default=0.0), 0.0), 1.0)


def _sign(level: float) -> Cell:
    """Anything above zero is seen."""
    return (LEVELS[max(1, round(level * (len(LEVELS) - 1)))], "bad") if level > 0 else BLANK
