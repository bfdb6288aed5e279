"""The chart of one head: its rates over the threshold; a click moves the threshold there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from textual import events
from textual.message import Message

from cockpit.core.plot.cells import Cells
from cockpit.core.plot.frame import LEFT, Sign, View, draw_cursor, draw_title, plot_width
from cockpit.core.plot.lines import Line, Look
from cockpit.core.plot.picture import paint
from cockpit.core.plot.scale import label, multiples, nice_step
from cockpit.widgets.ascii_filter import glyphs_of
from cockpit.widgets.metric_chart import Drawing, MetricChart

TICKS = 10


class CurveChart(MetricChart, can_focus=False):
    @dataclass
    class Picked(Message):
        """The place of this threshold was clicked."""

        threshold: float

    def __init__(self) -> None:
        super().__init__("", id="curves")
        self._title = ""
        self._curves: tuple[Line, ...] = ()
        self._painted_of: object = None
        self._painted = Cells.blank(0, 0)
        """The picture but for title and cursor, which alone change while a threshold is moved."""

    @property
    def name(self) -> str:
        """What stands above it."""
        return self._title

    @property
    def lines(self) -> tuple[Line, ...]:
        return self._curves

    def show_curves(
        self, title: str, curves: tuple[Line, ...], bounds: tuple[float, float], at: float, signs: Sequence[Sign]
    ) -> None:
        """Draw them with the cursor at `at`; only cells that changed are sent."""
        self._title, self._curves = title, curves
        low, high = bounds
        step = nice_step((high - low) / TICKS, whole=False)
        ticks = tuple((x, label(x, step)) for x in multiples(low, high, step))
        self.show((), Drawing(Look(), View("step", low, high, at, ticks), tuple(signs), glyphs_of(self.app)))

    def _paint(self, drawing: Drawing) -> Cells:
        view, glyphs = drawing.view, drawing.glyphs
        of = (self._curves, drawing.signs, self.size, glyphs, view.start, view.end)
        if of != self._painted_of:
            self._painted_of = of
            still = replace(view, cursor=None)
            self._painted = paint("", self._curves, drawing.signs, still, self.size, glyphs)
        cells = Cells(self._painted.texts.copy(), self._painted.styles.copy())
        draw_title(cells, self._title, (), glyphs, selected=False)
        draw_cursor(cells, view, plot_width(self.size.width), glyphs)
        return cells

    def on_click(self, event: events.Click) -> None:
        columns = plot_width(self.size.width)
        if self._drawing is not None and 0 <= event.x - LEFT < columns:
            self.post_message(self.Picked(self._drawing.view.place(event.x - LEFT, columns)))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """The cursor stays where it was put."""
