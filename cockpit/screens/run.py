"""One run, live: how far it is, its epochs and curves, what it says, and the keys that steer it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, Vertical
from textual.message import Message
from textual.widgets import Footer, Static, Tab, Tabs

from cockpit.core.control import Target
from cockpit.core.follow import News, RunFollower
from cockpit.core.model import Order, RunModel
from cockpit.core.play import can_play
from cockpit.core.poller import Poller
from cockpit.core.run_metrics import RunMetrics
from cockpit.core.settings import SettingsFile
from cockpit.core.text import plain
from cockpit.screens.charts import ChartsScreen
from cockpit.screens.palette import ActionProvider
from cockpit.screens.run_charts import loss_curves, score_curve
from cockpit.screens.steering import SteeringScreen
from cockpit.widgets.chart import CurveChart
from cockpit.widgets.epoch_table import EpochTable
from cockpit.widgets.events_view import EventsView
from cockpit.widgets.log_view import LogView
from cockpit.widgets.machine_view import MachineView
from cockpit.widgets.progress_view import ProgressView
from cockpit.widgets.run_header import RunHeader
from cockpit.widgets.status_line import StatusLine
from cockpit.widgets.throttle import Throttle
from engines.contract.events import Alert
from engines.contract.machine import Machine, Reading
from engines.contract.rundir import RunDirectory

POLL_SECONDS = 0.1
ENDED_POLL_SECONDS = 0.5
MACHINE_SECONDS = 2.0
FAST_SECONDS = 0.25
SLOW_SECONDS = 1.0
ORDER_SECONDS = 15.0
"""How long an order's outcome stays on the status line."""
WIDE = 120
LEFT_WIDTH = 80
"""Of events and log on a wide screen, at least."""
LOSS_TITLE = "Loss  [$train]━ train[/]  [$validation]━ validation[/]"
TABS = ("overview", "charts", "log", "events", "system")


class RunScreen(SteeringScreen):
    CSS_PATH = "run.tcss"
    COMMANDS = {ActionProvider}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (34, "-tall")]
    BINDINGS = [
        *SteeringScreen.STEERING,
        Binding("k", "checkpoint", "save", id="run.checkpoint", tooltip="Save last.pt now"),
        Binding("y", "play", "play", id="run.play", tooltip="Step through a session with what the run has exported"),
        Binding(
            "g", "charts", "charts", show=False, id="charts", tooltip="Every metric as a chart, to zoom and smooth"
        ),
        Binding("escape", "back", "runs", id="go.runs", tooltip="Back to the list of runs; the run goes on"),
        *(
            Binding(str(place), f"tab('{name}')", name, show=False, id=f"show.{name}", tooltip=f"Show {name}")
            for place, name in enumerate(TABS, 1)
        ),
    ]

    class Back(Message):
        """The person wants the list of runs."""

    @dataclass
    class Play(Message):
        """The person wants to play what the run has exported."""

        run: RunDirectory

    @dataclass
    class Followed(Message):
        """The follower has news."""

        news: News

    @dataclass
    class Measured(Message):
        """The machine was read."""

        reading: Reading
        playable: bool

    def __init__(self, run: RunDirectory, machine: Machine, clock: Callable[[], float], settings: SettingsFile) -> None:
        super().__init__()
        self.run = run
        self.model = RunModel()
        self._machine, self._clock, self._settings = machine, clock, settings
        self._follower = RunFollower(run)
        self._reading: Reading | None = None
        self._playable = False
        self._my_order = ""
        self._my_order_at = 0.0
        self._opened = time.time()
        self._fast = Throttle(self, FAST_SECONDS, self._show_numbers)
        self._slow = Throttle(self, SLOW_SECONDS, self._show_panes)

    def compose(self) -> ComposeResult:
        yield RunHeader()
        yield Tabs(*(Tab(name.title(), id=f"tab-{name}") for name in TABS))
        yield Static(id="banner", markup=False)
        with Container(id="body"):
            with Vertical(id="left"):
                yield EpochTable()
                yield ProgressView()
                yield EventsView()
                yield LogView()
            with Vertical(id="right"):
                yield CurveChart(id="loss", title=LOSS_TITLE, empty="no step yet")
                yield CurveChart(id="score", title="Score", empty="no epoch yet")
                yield MachineView()
        yield StatusLine()
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.query_one(Tabs).can_focus = False
        self.query_one(EpochTable).focus()
        pollers = (Poller("run", self._follow), Poller("machine", self._measure))
        self.follow(pollers, self.set_interval(SLOW_SECONDS, self._fast.ask))

    def on_resize(self) -> None:
        self._slow.ask()

    def on_screen_resume(self) -> None:
        self._fast.ask()
        self._slow.ask()

    # -- in the pollers' threads -----------------------------------------------------------------------------------

    def _follow(self) -> float:
        news = self._follower.poll()
        if news is not None:
            self.post_message(self.Followed(news))
        return POLL_SECONDS if self._follower.live else ENDED_POLL_SECONDS

    def _measure(self) -> float:
        self.post_message(self.Measured(self._machine.read(self.run.path), can_play(self.run)))
        return MACHINE_SECONDS

    # -- taking what they say --------------------------------------------------------------------------------------

    @on(Followed)
    def _take(self, message: Followed) -> None:
        state = self.model.status.state
        self.model.add(message.news)
        self._tell_alerts(message.news)
        if self.model.status.state != state or message.news.info is not None:
            self.set_class(self.model.is_task, "-task")
            self.set_class(self.model.status.state == "failed", "-failed")
        self.refresh_keys()
        self.withdraw_question(self.run.path, self.model.status.state)
        self._fast.ask()
        self._slow.ask()

    @on(Measured)
    def _take_reading(self, message: Measured) -> None:
        self._reading = message.reading
        if message.playable != self._playable:
            self._playable = message.playable
            self.refresh_bindings()
        self._fast.ask()

    @on(SteeringScreen.Sent)
    def _note_order(self, message: SteeringScreen.Sent) -> None:
        self._my_order, self._my_order_at = message.command.id, time.monotonic()

    def _tell_alerts(self, news: News) -> None:
        """Toast what happened since the screen was opened; what happened before is in the events."""
        for event in news.events:
            if isinstance(event, Alert) and event.time >= self._opened:
                severity = "information" if event.level == "info" else event.level
                self.notify(plain(event.text), severity=severity, timeout=10, markup=False)

    # -- showing ---------------------------------------------------------------------------------------------------

    def _show_numbers(self) -> None:
        if not self.is_active or not self.query(RunHeader):
            return  # under another screen every change would paint that one whole; a closing one has no widgets
        now = self._clock()
        self.query_one(RunHeader).show(self.model, now)
        if self._reading is not None:
            self.query_one(MachineView).show(self._reading)
        beside = self.query_one(MachineView).display
        self.query_one(StatusLine).show(self.model, None if beside else self._reading, self._order_in_flight())
        if self.model.is_task:
            self.query_one(ProgressView).show(self.model, now)

    def _order_in_flight(self) -> Order | None:
        """The last order from here, while it is news."""
        if time.monotonic() - self._my_order_at > ORDER_SECONDS:
            return None
        return self.model.order(self._my_order)

    def _show_panes(self) -> None:
        if not self.is_active or not self.query(RunHeader):
            return
        model = self.model
        self._show_banner()
        table = self.query_one(EpochTable)
        table.show(model)
        self.query_one("#left").styles.width = self._left_width(table.needs_width)
        self.query_one(EventsView).show(model)
        self.query_one(LogView).show(model.log)
        self.query_one("#loss", CurveChart).show(*loss_curves(model))
        self.query_one("#score", CurveChart).show(*score_curve(model))

    def _left_width(self, needed: int) -> int | str:
        """On a wide screen the table gets what it needs, up to two thirds; the charts get the rest."""
        wide = self.size.width >= WIDE and not self.model.is_task
        return min(max(needed, LEFT_WIDTH), self.size.width * 2 // 3) if wide else "1fr"

    def _show_banner(self) -> None:
        """What is wrong, in a line; nothing when nothing is."""
        model = self.model
        words = [model.problem] if model.problem else []
        words += [] if model.live or not model.status.detail else [model.status.detail]
        words += [f"{bad.count} bad line{'s' if bad.count > 1 else ''} in {bad.file}" for bad in model.damaged]
        banner = self.query_one("#banner", Static)
        text = Text(" · ".join(plain(word) for word in words))
        banner.set_class(bool(words), "-shown")
        banner.set_class(model.status.state in ("failed", "lost"), "-bad")
        if banner.content != text:
            banner.update(text)

    # -- keys ------------------------------------------------------------------------------------------------------

    def target(self) -> Target | None:
        model = self.model
        if model.info is None:
            return None
        number = model.attempt.number if model.attempt else 0
        return Target(self.run, model.info.id, number, model.status.state, model.is_task)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "tab":
            return not (self.model.is_task and parameters == ("charts",))
        if action == "charts":
            return not self.model.is_task
        if action == "play":
            return self._playable  # not greyed: a narrow footer has no room for what most runs never have
        return super().check_action(action, parameters)

    def action_tab(self, name: str) -> None:
        self.query_one(Tabs).active = f"tab-{name}"

    @on(Tabs.TabActivated)
    def _show_tab(self, event: Tabs.TabActivated) -> None:
        for name in TABS:
            self.set_class(event.tab.id == f"tab-{name}", f"-{name}")
        if (focused := self.focused) is not None and not focused.display:
            self.focus_next()

    def action_charts(self) -> None:
        metrics = RunMetrics(self.run, self.model.info.id if self.model.info else self.run.path.name)
        self.app.push_screen(ChartsScreen(metrics, metrics.marks))

    def action_play(self) -> None:
        self.post_message(self.Play(self.run))

    def action_back(self) -> None:
        self.post_message(self.Back())
