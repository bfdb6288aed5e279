"""Every metric of a log as a chart: filtered, enlarged, zoomed, smoothed, with one cursor through all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input

from cockpit.core.plot.axis import AxisName
from cockpit.core.plot.charts_view import USUAL_SMOOTHING, ChartsView
from cockpit.core.plot.frame import Sign
from cockpit.core.plot.glyphs import Glyphs
from cockpit.core.plot.groups import Role, grouped
from cockpit.core.plot.lines import Look, Member
from cockpit.core.poller import Poller
from cockpit.core.series import Mark, MetricSource, Series
from cockpit.core.text import plain
from cockpit.widgets.ascii_filter import glyphs_of
from cockpit.widgets.chart_grid import ChartGrid
from cockpit.widgets.charts_words import legend_words, state_words, weights_at
from cockpit.widgets.metric_chart import Drawing, MetricChart
from cockpit.widgets.steady import Steady
from cockpit.widgets.throttle import Throttle
from engines.basics.errors import UserError

POLL_SECONDS = 0.5
SHOW_SECONDS = 1.0
Grouping = Callable[[Iterable[str]], Mapping[str, Sequence[tuple[Role, str]]]]


class ChartsPanel(Vertical):
    """Follows `source` in a thread of its own and draws it while it can be seen.

    Its keys act while the focus is in it: `take_focus`. Escape undoes its filter, then its enlarging, and is then left
    to the screen. A screen that lies under another, or shows another tab, sets `following` to False.
    """

    BINDINGS = [
        Binding("enter", "enlarge", "open", id="charts.enlarge", tooltip="Enlarge this chart, or show all charts"),
        Binding("slash", "filter", "filter", id="charts.filter", tooltip="Filter charts by words in their names"),
        Binding("m", "smooth", "smooth", id="charts.smooth", tooltip="Smoothing of steps: off, 0.6, 0.9, 0.98"),
        Binding("o", "log", "log", show=False, id="charts.log", tooltip="Logarithmic or linear values"),
        Binding("O", "log_x", "log x", show=False, id="charts.log-x", tooltip="Logarithmic or linear horizontal axis"),
        Binding("Y", "range", "y range", show=False, id="charts.range",
                tooltip="Set the lowest and highest value of this chart"),
        Binding("H", "trim", "hide outliers", show=False, id="charts.trim",
                tooltip="Leave rare values out of the range, and back"),
        Binding("b", "axis", "axis", id="charts.axis", tooltip="Horizontal axis: steps, epochs, hours or time of day"),
        Binding("plus,equals_sign", "zoom(True)", "zoom in", show=False, id="charts.closer", key_display="+",
                tooltip="Zoom in around the cursor (also the wheel on an enlarged chart, elsewhere with ctrl)"),
        Binding("minus", "zoom(False)", "zoom out", show=False, id="charts.wider", tooltip="Zoom out"),
        Binding("left", "pan(-1)", "pan left", show=False, id="charts.left", tooltip="Move the view to the left"),
        Binding("right", "pan(1)", "pan right", show=False, id="charts.right", tooltip="Move the view to the right"),
        Binding("comma", "cursor(-1)", "cursor left", show=False, id="charts.cursor-left",
                tooltip="Move the cursor to the previous point; chart titles show the values there"),
        Binding("full_stop", "cursor(1)", "cursor right", show=False, id="charts.cursor-right",
                tooltip="Move the cursor to the next point"),
        Binding("0", "reset", "reset", show=False, id="charts.reset", tooltip="Show the whole axis, no cursor"),
        Binding("up", "move(-1)", "chart above", show=False, id="charts.up", tooltip="Select the chart above"),
        Binding("down", "move(1)", "chart below", show=False, id="charts.down", tooltip="Select the chart below"),
        Binding("escape", "undo", "all charts", show=False, id="charts.undo", tooltip="Clear filter, then all charts"),
    ]  # fmt: skip

    class Grown(Message):
        """There is news of the log; it has been taken in."""

    @dataclass
    class Polled(Message):
        """What the thread has read; `names` of roles where the legend does not call them by themselves."""

        charts: Mapping[str, list[Member]]
        names: Mapping[str, str]
        marks: Sequence[Mark]
        problems: Sequence[str]

    def __init__(
        self, source: MetricSource, marks: Callable[[], Sequence[Mark]] = tuple, *, axis: AxisName = "step",
        smoothing: float = USUAL_SMOOTHING, grouping: Grouping = grouped,
        names: Callable[[], Mapping[str, str]] = dict, id: str | None = None,
    ) -> None:  # fmt: skip
        """`marks`, `grouping` and `names` are asked in the thread in which `source` is polled, right behind it.

        `grouping` makes charts of the names of metrics; `names` says what roles mean in the legend. Of an `Overlay`
        these are `by_metric` and its own `names`.
        """
        super().__init__(id=id)
        self._source, self._ask_marks = source, marks
        self._grouping, self._ask_names = grouping, names
        self._known = False
        self._charts: Mapping[str, list[Member]] = {}
        self._names: Mapping[str, str] = {}
        self._marks: Sequence[Mark] = ()
        self._problems: Sequence[str] = ()
        self.view = ChartsView(Look(axis=axis, smoothing=smoothing))
        self._poller = Poller("charts", self._poll)
        self._limited = ""
        """The chart whose range is typed."""
        self._following = True
        self._hurried = False
        """Whether what is polled next is shown at once."""
        self._throttle = Throttle(self, SHOW_SECONDS, self._show)

    def compose(self) -> ComposeResult:
        yield Steady(id="state", markup=False)
        yield Steady(id="problems", markup=False)
        yield Input(id="filter", placeholder="words of a chart's name", compact=True, disabled=True)
        yield Input(
            id="range", placeholder="lowest and highest value, as 0.2 0.9 or 0.2 auto; empty: automatic",
            compact=True, disabled=True,
        )  # fmt: skip
        yield ChartGrid()

    @property
    def grid(self) -> ChartGrid:
        return self.query_one(ChartGrid)

    def take_focus(self) -> None:
        """Give the focus to the chart that had it last."""
        self.grid.focus_selected()

    # -- following -------------------------------------------------------------------------------------------------

    @property
    def following(self) -> bool:
        """Whether the log is read and drawn."""
        return self._following

    @following.setter
    def following(self, following: bool) -> None:
        self._following = following
        if following:
            self._poller.resume()
            self._poller.hurry()  # what was logged meanwhile waits for no interval
            self._throttle.ask()
        else:
            self._poller.pause()

    def look_at_once(self) -> None:
        """The source was asked to show something else: an answer to a key waits for nothing."""
        self._hurried = True
        self._poller.hurry()

    def on_mount(self) -> None:
        self._poller.start()
        self._show()

    def on_show(self) -> None:
        self._throttle.hurry()

    def on_unmount(self) -> None:
        self._poller.stop()

    def _poll(self) -> float:
        """Runs in the poller's thread."""
        if self._source.poll() or not self._known:
            self._known = True
            series = self._source.series()
            charts = {
                chart: [(role, series[name]) for role, name in members]
                for chart, members in self._grouping(series).items()
            }
            self.post_message(self.Polled(charts, self._ask_names(), self._ask_marks(), self._source.problems()))
        return POLL_SECONDS

    @on(Polled)
    def _take(self, message: Polled) -> None:
        message.stop()
        hurried, self._hurried = self._hurried or not self._charts, False  # the first charts wait for nothing either
        show = self._throttle.hurry if hurried else self._throttle.ask
        self._charts, self._names = message.charts, message.names
        self._marks, self._problems = message.marks, message.problems
        show()
        self.post_message(self.Grown())

    # -- showing ---------------------------------------------------------------------------------------------------

    @property
    def seen(self) -> bool:
        """Under another screen every change would paint that one whole; in a hidden tab it would be for nothing."""
        return self._following and self.screen.is_active and self.size.width > 0 and self.grid.seen

    def _show(self) -> None:
        """Take in what is new, and paint."""
        self.view = self.view.over(self._series)
        self._draw()

    @property
    def _series(self) -> list[Series]:
        return [one for members in self._charts.values() for _, one in members]

    def _draw(self) -> None:
        if not self.seen:
            return
        view, signs = self.view, tuple(Sign(mark.kind, place) for mark, place in self._placed)
        self.grid.show(self._charts, Drawing(view.look, view.part, signs, self._glyphs, ranges=view.ranges))
        self._show_words()

    @property
    def _placed(self) -> list[tuple[Mark, float]]:
        """The marks that have a place on the axis."""
        places = [(mark, self.view.place(mark)) for mark in self._marks]
        return [(mark, place) for mark, place in places if math.isfinite(place)]

    @property
    def _glyphs(self) -> Glyphs:
        return glyphs_of(self.app)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.query("#problems"):  # not before it is composed
            self._show_words()

    def _show_words(self) -> None:
        """How the charts are drawn, and what their lines and signs mean: one line, most telling first."""
        state = state_words(self.view)
        if weights := weights_at([(place, mark.weights) for mark, place in self._placed], self.view.cursor):
            state.append(weights)
        if (text := self.query_one("#filter", Input).value) and self.view.enlarged is None:
            state.append(f"“{plain(text)}”: {len(self.view.matching(self._charts))} of {len(self._charts)}")
        legend = legend_words(self._charts, self._marks, self._glyphs, self._names)
        self.query_one("#state", Steady).update(
            Content.assemble((" · ".join(state), "$foreground"), "   ", legend), layout=False
        )
        self.query_one("#problems").set_class(bool(self._problems), "-shown")
        self.query_one("#problems", Steady).update(
            Text(" · ".join(plain(problem) for problem in self._problems)), layout=False
        )

    # -- keys ------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape is the screen's as long as there is nothing to undo here."""
        if action == "undo":
            return self.is_mounted and (self.view.enlarged is not None or self._entry is not None)
        return super().check_action(action, parameters)

    def action_enlarge(self) -> None:
        chart = self.grid.selected if self.view.enlarged is None else None
        self._choose(self.view.enlarge(chart.name if chart is not None else None))
        self.grid.focus_selected()
        self.refresh_bindings()

    def action_undo(self) -> None:
        if (entry := self._entry) is None:
            self.action_enlarge()
            return
        if entry.id == "filter":
            entry.value = ""
        self._leave(entry)

    def _choose(self, view: ChartsView) -> None:
        """Other charts are shown."""
        self.view = view
        self.grid.choose(view)
        self._show_words()

    def _look(self, view: ChartsView) -> None:
        """The same charts are drawn otherwise."""
        if view != self.view:
            self.view = view
            self._draw()

    def action_smooth(self) -> None:
        self._look(self.view.next_smoothing())

    def action_log(self) -> None:
        self._look(self.view.other_scale())

    def action_trim(self) -> None:
        self._look(self.view.trim())

    def action_log_x(self) -> None:
        self._look(self.view.other_axis_scale().over(self._series))

    def action_axis(self) -> None:
        self._look(self.view.next_axis(self._series).over(self._series))

    def action_zoom(self, closer: bool) -> None:
        self._look(self.view.zoom(closer, self.view.cursor))

    @on(MetricChart.Zoomed)
    def _wheel(self, message: MetricChart.Zoomed) -> None:
        self._look(self.view.zoom(message.closer, message.x))

    def action_pan(self, direction: int) -> None:
        self._look(self.view.pan(direction))

    def action_reset(self) -> None:
        self._look(self.view.reset())

    def action_cursor(self, direction: int) -> None:
        if (chart := self.grid.selected) is not None:
            self._look(self.view.point(chart.beside(self.view.cursor, direction)))

    @on(MetricChart.Pointed)
    def _pointed(self, message: MetricChart.Pointed) -> None:
        self._look(self.view.point(message.x))

    def action_move(self, rows: int) -> None:
        self.grid.move(rows)

    @on(MetricChart.Picked)
    def _picked(self) -> None:
        self.action_enlarge()

    # -- what is typed ---------------------------------------------------------------------------------------------

    @property
    def _entry(self) -> Input | None:
        """The filter or the range, while it is typed."""
        return next((entry for entry in self.query(Input) if not entry.disabled), None)

    def _enter(self, entry: Input) -> None:
        entry.disabled = False
        entry.focus()
        self.refresh_bindings()

    def _leave(self, entry: Input) -> None:
        entry.disabled = True
        self.refresh_bindings()
        self.take_focus()

    def action_range(self) -> None:
        if (chart := self.grid.selected) is not None:
            self._limited = chart.name or ""
            entry = self.query_one("#range", Input)
            entry.value = self.view.range_text(self._limited)
            self._enter(entry)

    @on(Input.Submitted, "#range")
    def _limit(self, event: Input.Submitted) -> None:
        try:
            view = self.view.limit(self._limited, event.value)
        except UserError as error:
            self.notify(plain(str(error)), severity="warning", markup=False)
            return
        self._look(view)
        self._leave(event.input)

    def action_filter(self) -> None:
        self._enter(self.query_one("#filter", Input))

    @on(Input.Changed, "#filter")
    def _filter(self, event: Input.Changed) -> None:
        event.stop()
        self._choose(self.view.filter(event.value))

    @on(Input.Submitted, "#filter")
    def _filtered(self, event: Input.Submitted) -> None:
        self._leave(event.input)
