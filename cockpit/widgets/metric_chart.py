"""One metric's chart: painted as characters, of which only those that changed are sent to the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from cockpit.core.plot.cells import Cells
from cockpit.core.plot.frame import LEFT, Sign, View, plot_width
from cockpit.core.plot.glyphs import UNICODE, Glyphs
from cockpit.core.plot.lines import ChartLines, Line, Look, Member, nearest
from cockpit.core.plot.picture import paint
from cockpit.core.plot.scale import Ends
from cockpit.core.text import plain
from cockpit.widgets.ascii_filter import glyphs_of
from cockpit.widgets.plot_styles import plot_styles


@dataclass(frozen=True)
class Drawing:
    """What all charts of a grid have in common."""

    look: Look
    view: View
    signs: tuple[Sign, ...] = ()
    glyphs: Glyphs = UNICODE
    legend: bool = False
    """Whether each chart says what the signs mean."""
    ranges: Mapping[str, Ends] = field(default_factory=dict)
    """Of charts by name, where the user has set them."""
    about: str = ""
    """What the title says behind the chart's name, as far as there is room."""


class MetricChart(Widget, can_focus=True):
    @dataclass
    class Pointed(Message):
        """The mouse is over the place `x` of the axis."""

        x: float

    @dataclass
    class Zoomed(Message):
        """The wheel asks for more or less detail around `x`."""

        closer: bool
        x: float

    class Picked(Message):
        """It was clicked twice."""

    def __init__(self, name: str, id: str | None = None) -> None:
        super().__init__(name=name, id=id)
        self._maker = ChartLines()
        self._members: Sequence[Member] = ()
        self._drawing: Drawing | None = None
        self._cells = Cells.blank(0, 0)
        self.wheel_zooms = False
        """Whether the wheel zooms by itself, and not only with ctrl."""

    def take(self, members: Sequence[Member], drawing: Drawing) -> None:
        """What to show from the next `look` on."""
        self._members, self._drawing = members, drawing

    def show(self, members: Sequence[Member], drawing: Drawing) -> None:
        """Take it and paint it."""
        self.take(members, drawing)
        self.look()

    def look(self) -> None:
        """Paint it, and have drawn what is different."""
        if self._drawing is None or not self.size.width:
            return
        before, self._cells = self._cells, self._paint(self._drawing)
        if before.texts.shape != self._cells.texts.shape:
            self.refresh()
        elif changes := self._cells.changes(before):
            self.refresh(*(Region(first, y, stop - first, 1) for y, first, stop in changes))

    def _paint(self, drawing: Drawing) -> Cells:
        title = plain(" · ".join(filter(None, (self.name, drawing.about))))
        return paint(
            title, self.lines, drawing.signs, drawing.view, self.size, drawing.glyphs,
            log=drawing.look.log, trimmed=drawing.look.trimmed,
            ends=drawing.ranges.get(self.name or "", (None, None)), selected=self.has_focus, legend=drawing.legend,
        )  # fmt: skip

    @property
    def lines(self) -> tuple[Line, ...]:
        return self._maker.make(self._members, self._drawing.look) if self._drawing else ()

    def on_resize(self) -> None:
        if isinstance(self.parent, Widget) and self.parent.can_view_partial(self):  # else when it comes into view
            self.look()

    def notify_style_update(self) -> None:
        """Other colours need no more than a repaint, which this asks for; other characters another picture."""
        super().notify_style_update()
        if self._drawing is not None and self._drawing.glyphs is not (glyphs := glyphs_of(self.app)):
            self._drawing = replace(self._drawing, glyphs=glyphs)
            self.look()

    def watch_has_focus(self, focused: bool) -> None:
        super().watch_has_focus(focused)
        self.look()

    def render_line(self, y: int) -> Strip:
        styles = plot_styles(self.app.theme_variables)
        segments = [Segment(text, styles[style]) for text, style in self._cells.row(y)]
        return (
            Strip(segments, self._cells.texts.shape[1])
            .adjust_cell_length(self.size.width, self.rich_style)
            .apply_style(self.rich_style)
        )

    def copyable(self) -> str:
        """The chart as text."""
        rows = ("".join(text for text, _ in self._cells.row(y)) for y in range(self._cells.texts.shape[0]))
        return "\n".join(row.rstrip() for row in rows)

    # -- places on the axis ----------------------------------------------------------------------------------------

    def beside(self, x: float | None, direction: int) -> float | None:
        """The next point at least a column away from `x`, to the right (1) or left (-1); from None the last in view."""
        if self._drawing is None:
            return x
        view = self._drawing.view
        column = (view.end - view.start) / plot_width(self.size.width)
        found = []
        for line in self.lines:
            if line.behind or not len(line.x):
                continue
            if x is None or direction < 0:
                place = int(np.searchsorted(line.x, view.end if x is None else x - column, "right")) - 1
            else:
                place = int(np.searchsorted(line.x, x + column, "left"))
            if 0 <= place < len(line.x) and view.start <= line.x[place] <= view.end:
                found.append(float(line.x[place]))
        if not found:
            return x
        return max(found) if x is None or direction < 0 else min(found)

    def _under(self, column: int) -> float | None:
        """The point nearest to a column of the widget; None outside the plot."""
        columns = plot_width(self.size.width)
        if self._drawing is None or not 0 <= column - LEFT < columns:
            return None
        x = self._drawing.view.place(column - LEFT, columns)
        points = [float(line.x[nearest(line, x)]) for line in self.lines if not line.behind and len(line.x)]
        return min(points, key=lambda point: abs(point - x), default=x)

    # -- the mouse -------------------------------------------------------------------------------------------------

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if (x := self._under(event.x)) is not None:
            self.post_message(self.Pointed(x))

    def on_click(self, event: events.Click) -> None:
        if event.chain == 2:
            self.post_message(self.Picked())

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, closer=True)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, closer=False)

    def _wheel(self, event: events.MouseEvent, *, closer: bool) -> None:
        if self._drawing is None or not (self.wheel_zooms or event.ctrl):
            return  # the grid scrolls
        event.stop()
        columns = plot_width(self.size.width)
        x = self._drawing.view.place(min(max(event.x - LEFT, 0), columns - 1), columns)
        self.post_message(self.Zoomed(closer, x))
