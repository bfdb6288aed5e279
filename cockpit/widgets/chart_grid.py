"""All charts side by side, as many as there is room for; one of them alone when it is enlarged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from cockpit.core.plot.charts_view import ChartsView
from cockpit.core.plot.lines import Member
from cockpit.widgets.metric_chart import Drawing, MetricChart

NARROWEST, WIDEST = 38, 100
LOWEST = 9
"""Sizes of a chart, frame included."""


class ChartGrid(VerticalScroll, can_focus=False, inherit_bindings=False):
    BINDINGS = [  # the arrows select charts and move through time
        Binding("pageup", "page_up", "page up", show=False),
        Binding("pagedown", "page_down", "page down", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(id="grid")
        self._charts: dict[str, MetricChart] = {}
        self._view = ChartsView()
        self._selected: str | None = None

    def compose(self) -> list[Static]:
        return [Static("no metric logged yet", id="nothing", markup=False)]

    @property
    def seen(self) -> bool:
        """Whether it has a place on its screen: not in a hidden tab."""
        return all(widget.display for widget in self.ancestors_with_self if isinstance(widget, Widget))

    # -- what is shown ---------------------------------------------------------------------------------------------

    def show(self, charts: Mapping[str, Sequence[Member]], drawing: Drawing) -> None:
        """Take data and look; charts that cannot be seen are painted when they come into view."""
        new = [name for name in charts if name not in self._charts]
        for name in new:
            self._charts[name] = MetricChart(name)
        gone = [self._charts.pop(name) for name in [name for name in self._charts if name not in charts]]
        had_focus = any(chart.has_focus for chart in gone)
        for chart in gone:
            chart.remove()
        for name, members in charts.items():
            self._charts[name].take(members, drawing)
        if new:
            self.mount(*(self._charts[name] for name in new))
            order = {name: place for place, name in enumerate(charts)}
            self.sort_children(key=lambda widget: order.get(widget.name or "", -1))
            self._charts = {name: self._charts[name] for name in charts}
        if new or gone:
            self.lay_out()
        if had_focus:
            self.focus_selected()
        self.look()

    def look(self) -> None:
        """Paint what can be seen."""
        for chart in self.shown:
            if self.can_view_partial(chart):
                chart.look()

    @property
    def shown(self) -> list[MetricChart]:
        """The charts that the view leaves, in order."""
        return [self._charts[name] for name in self._view.shown(self._charts)]

    @property
    def selected(self) -> MetricChart | None:
        """The chart that the keys mean: that with the focus, else the last that had it."""
        shown = self.shown
        focused = next((chart for chart in shown if chart.has_focus), None)
        remembered = next((chart for chart in shown if chart.name == self._selected), None)
        return focused or remembered or next(iter(shown), None)

    def choose(self, view: ChartsView) -> None:
        """Show the charts that `view` leaves."""
        self._view = view
        self.lay_out()

    def focus_selected(self) -> None:
        """Give the focus to the chart that had it last; to the grid, for its keys, while there are none."""
        if (selected := self.selected) is not None:
            self._selected = selected.name
        self.call_after_refresh(self._give_focus)

    def _give_focus(self) -> None:
        (self.selected or self).focus()

    def move(self, rows: int) -> None:
        """Select the chart above or below."""
        shown, selected = self.shown, self.selected
        if selected is not None:
            place = shown.index(selected) + rows * self._columns(len(shown))
            shown[min(max(place, 0), len(shown) - 1)].focus()

    # -- where it is shown -----------------------------------------------------------------------------------------

    def lay_out(self) -> None:
        """Give every chart its place and size: wide ones rather than high ones, none smaller than can be read."""
        shown = self.shown
        for chart in self._charts.values():
            chart.display = chart in shown
            chart.wheel_zooms = self._view.enlarged is not None
        nothing = self.query_one("#nothing", Static)
        nothing.display = not shown
        nothing.update("no chart has these words in its name" if self._charts else "no metric logged yet")
        columns = self._columns(len(shown))
        rows = -(-len(shown) // columns)
        in_view = max(1, min(rows, self.size.height // LOWEST))
        self.styles.grid_size_columns = columns
        self.styles.grid_rows = str(max(LOWEST, self.size.height // in_view)) if shown else "1fr"
        self.can_focus = not shown
        if self.seen and (self.screen.focused is None or (self.has_focus and shown)):
            self.focus_selected()
        self.call_after_refresh(self.look)

    def _columns(self, charts: int) -> int:
        """As few as fill the height without scrolling, within what is readable."""
        fewest, most = max(1, -(-self.size.width // WIDEST)), max(1, self.size.width // NARROWEST)
        for columns in range(fewest, most):
            if -(-charts // columns) * LOWEST <= self.size.height:
                return max(1, min(columns, charts))
        return max(1, min(most, charts))

    def on_resize(self) -> None:
        self.lay_out()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.call_after_refresh(self.look)
