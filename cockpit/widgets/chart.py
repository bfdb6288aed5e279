"""Curves of a run drawn with plotext: reduced to pixels first, gaps where values are not finite, marks on the axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.text import Text
from textual.geometry import Size
from textual_plotext import PlotextPlot

from cockpit.core.format import fitted
from cockpit.core.series import Curve, Floats, reduce_curve

LABEL_WIDTH = 6
MARGIN = 0.05
"""Of the range, above and below the curves."""
BRAILLE_COLUMNS = 2
"""Dots a braille character is wide."""
ROUND = [digit * 10**power for power in range(9) for digit in (1, 2, 5)]
Rgb = tuple[int, int, int]


@dataclass(frozen=True)
class Line:
    """One series: `x, y: (n,)`, x ascending, drawn in the colour of its component class."""

    kind: str
    x: Floats
    y: Floats
    leads: bool = True
    """Whether it sets the range of the chart; what does not is cut off at its edges."""


@dataclass(frozen=True)
class Mark:
    """A sign on the axis at `x`."""

    kind: str
    sign: str
    x: float


@dataclass(frozen=True)
class _Picture:
    """Everything that decides what is drawn: equal pictures need no drawing."""

    size: Size
    curves: tuple[tuple[str, Curve], ...] = ()
    marks: tuple[Mark, ...] = ()
    ticks: tuple[tuple[float, str], ...] = ()
    start: float = 0.0
    end: float = 1.0
    low: float = 0.0
    high: float = 1.0


class CurveChart(PlotextPlot):
    COMPONENT_CLASSES = {
        "chart--axis", "chart--old", "chart--train", "chart--step", "chart--validation", "chart--score",
        "chart--edit", "chart--best", "chart--resume", "chart--bad",
    }  # fmt: skip

    def __init__(self, *, id: str, title: str, empty: str) -> None:
        super().__init__(id=id, classes="pane")
        self.border_title = title
        self._empty = empty
        self._lines: tuple[Line, ...] = ()
        self._marks: tuple[Mark, ...] = ()
        self._ticks: Mapping[float, int] = {}
        self._picture = _Picture(Size(0, 0))

    def show(self, lines: Sequence[Line], marks: Sequence[Mark], ticks: Mapping[float, int]) -> None:
        """Take the data; draws only if the picture changes. `ticks` label places on the x axis."""
        self._lines, self._marks, self._ticks = tuple(lines), tuple(marks), ticks
        self._look()

    def on_resize(self) -> None:
        self._look()

    def _look(self) -> None:
        if self.size.width and (picture := self._compose_picture(self.size)) != self._picture:
            self._picture = picture
            self.border_subtitle = self._legend(picture)
            self.refresh()

    def _legend(self, picture: _Picture) -> str:
        """What the signs mean, of those that are there."""
        words = [f"[${kind}]{sign}[/] {kind}" for kind, sign in dict.fromkeys((m.kind, m.sign) for m in picture.marks)]
        if bad := sum(curve.bad_count for _, curve in picture.curves):
            words.append(f"[$bad]×[/] {bad:,} not finite")
        return "  ".join(words)

    def _compose_picture(self, size: Size) -> _Picture:
        places = [line.x for line in self._lines if len(line.x)]
        if not places:
            return _Picture(size)
        start, end = float(min(x[0] for x in places)), float(max(x[-1] for x in places))
        columns = max(1, size.width - LABEL_WIDTH - 1) * BRAILLE_COLUMNS
        reduced = [(line, reduce_curve(line.x, line.y, columns, start, end)) for line in self._lines]
        low, high = _range(reduced)
        curves = tuple((line.kind, curve.cut(low, high)) for line, curve in reduced)
        marks = tuple(mark for mark in self._marks if start <= mark.x <= end)
        return _Picture(size, curves, marks, self._fitting_ticks(size.width, start, end), start, end, low, high)

    def _fitting_ticks(self, width: int, start: float, end: float) -> tuple[tuple[float, str], ...]:
        """A handful of the labels at round numbers."""
        inside = [(x, label) for x, label in self._ticks.items() if start <= x <= end]
        every = next(step for step in ROUND if len(inside) <= step * max(2, width // 12))
        return tuple((x, str(label)) for x, label in inside if label % every == 0 or len(inside) == 1)

    # -- drawing ---------------------------------------------------------------------------------------------------

    def render(self) -> Text:
        picture = self._picture
        curves = [curve for _, curve in picture.curves if curve.pieces]
        if not curves or picture.size != self.size:
            axis = self.get_component_rich_style("chart--axis", partial=True)
            return Text(self._empty, axis, justify="center")
        self._frame(picture)
        for kind, curve in picture.curves:
            self._draw(curve, self._colour(kind), picture.low)
        for mark in picture.marks:
            self.plt.scatter([mark.x], [picture.low], marker=mark.sign, color=self._colour(mark.kind))
        return Text.from_ansi(self.plt.build(), no_wrap=True, end="")

    def _frame(self, picture: _Picture) -> None:
        plt = self.plt
        plt.clear_figure()
        plt.plotsize(*picture.size)
        plt._set_size(*picture.size)  # as PlotextPlot does: plotsize alone stops at the terminal's width
        plt.theme("clear")
        plt.axes_color("default")
        plt.ticks_color(self._colour("axis"))
        plt.xaxes(True, False)
        plt.yaxes(True, False)
        plt.xlim(picture.start, picture.end if picture.end > picture.start else picture.start + 1)
        plt.ylim(picture.low, picture.high)
        levels = np.linspace(picture.low, picture.high, 3).tolist()
        plt.yticks(levels, [fitted(level, ".3g", LABEL_WIDTH).rjust(LABEL_WIDTH) for level in levels])
        plt.xticks([x for x, _ in picture.ticks], [label for _, label in picture.ticks])

    def _draw(self, curve: Curve, colour: Rgb, low: float) -> None:
        for xs, ys in curve.pieces:
            draw = self.plt.plot if len(xs) > 1 else self.plt.scatter
            draw(list(xs), list(ys), marker="braille", color=colour)
        if curve.bad:
            self.plt.scatter(list(curve.bad), [low] * len(curve.bad), marker="×", color=self._colour("bad"))

    def _colour(self, kind: str) -> Rgb:
        return self.get_component_styles(f"chart--{kind}").color.rgb


def _range(curves: Sequence[tuple[Line, Curve]]) -> tuple[float, float]:
    """Lowest and highest value to show: of the lines that lead and have a course, else of all."""
    leading = [value for line, curve in curves if line.leads and len(curve.values) > 1 for value in curve.values]
    shown = leading or [value for _, curve in curves for value in curve.values]
    if not shown:
        return 0.0, 1.0
    low, high = min(shown), max(shown)
    margin = (high - low) * MARGIN or (abs(low) or 1.0) / 2
    return low - margin, high + margin


def numbers(values: Sequence[float | None]) -> Floats:
    """Values as an array, None as NaN."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
