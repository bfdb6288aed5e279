"""One run, live: how far it is, its epochs and curves, what it says, and the keys that steer it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.widgets import Tab, Tabs

from cockpit.core import titles
from cockpit.core.hosts.links import host_of, link_of
from cockpit.core.poller import Poller
from cockpit.core.run.alerts import sentence
from cockpit.core.run.control import Action, Target
from cockpit.core.run.follow import BEHIND_SECONDS, News, RunFollower
from cockpit.core.run.model import RunModel
from cockpit.core.run.orders import Order
from cockpit.core.runs import run_away
from cockpit.core.runs.baseline import Versus
from cockpit.core.runs.last_seen import Attention
from cockpit.core.scenes.play import can_play
from cockpit.core.settings import SettingsFile
from cockpit.core.thresholds.review import can_review
from cockpit.notice import Notice
from cockpit.screens import steering
from cockpit.screens.changing_keys import ChangingKeysScreen
from cockpit.screens.palette import ActionProvider
from cockpit.screens.polling import PollingScreen
from cockpit.screens.run_overview import WIDE, RunOverview
from cockpit.screens.run_tabs import TABS, RunTabs, Shown
from cockpit.screens.steering import Steering
from cockpit.widgets.away_panel import AwayPanel
from cockpit.widgets.events_pane import EventsPane
from cockpit.widgets.footer import Footer
from cockpit.widgets.run_banner import RunBanner
from cockpit.widgets.run_header import RunHeader
from cockpit.widgets.status_line import StatusLine
from cockpit.widgets.throttle import Throttle
from engines.contract.events import Alert
from engines.contract.rundir import RunDirectory
from engines.host.machine import Machine, Reading

POLL_SECONDS = 0.1
ENDED_POLL_SECONDS = 0.5
MACHINE_SECONDS = 2.0
FAST_SECONDS = 0.25
SLOW_SECONDS = 1.0
ORDER_SECONDS = 15.0
"""How long an order's outcome stays on the status line."""
AWAY_SECONDS = 60.0
"""How long what happened meanwhile stays on the screen."""


def _machine_of(run: RunDirectory, here: Machine) -> Machine:
    """The one that the run is on."""
    if (link := link_of(run.path)) is None:
        return here
    from cockpit.core.metrics.their_machine import TheirMachine

    return TheirMachine(run, link)


class RunScreen(PollingScreen, ChangingKeysScreen):
    CSS_PATH = "run.tcss"
    COMMANDS = {ActionProvider}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (34, "-tall")]
    CHANGING = steering.CHANGING
    BINDINGS = [
        *steering.KEYS,
        Binding("w", "change('weights')", "weights", id="run.weights", tooltip="Show and edit loss weights"),
        Binding(
            "l", "change('course')", "lr & stop", id="run.rate", tooltip="Learning rate, epochs, patience, early stop"
        ),
        steering.CHECKPOINT,
        Binding("t", "thresholds", "thresholds", id="run.thresholds", tooltip="Tune, review and save thresholds"),
        Binding("c", "compare", "compare", id="run.compare", tooltip="Compare with other runs"),
        steering.FORK,
        Binding("y", "play", "play", id="run.play", tooltip="Step through a recording with the exported model"),
        Binding("escape", "back", "runs", id="go.runs", tooltip="Back to the list of runs; this run keeps running"),
        *(
            Binding(str(place), f"tab('{name}')", name, show=False, id=f"show.{name}", tooltip=f"Show {name}")
            for place, name in enumerate((kind.name for kind in TABS), 1)
        ),
    ]

    class Back(Message):
        """The person wants the list of runs."""

    @dataclass
    class Compare(Message):
        """The person wants to choose runs beside this one."""

        run: RunDirectory

    @dataclass
    class Play(Message):
        """The person wants to play what the run has exported."""

        run: RunDirectory

    @dataclass
    class Steer(Message):
        """The person wants to change loss weights, or the learning rate and the end."""

        run: RunDirectory
        what: str

    @dataclass
    class Thresholds(Message):
        """The person wants to see and move its thresholds."""

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
        reviewable: bool
        last_seen: float | None
        """When the run was looked at before it was opened now."""
        baseline: tuple[float | None, str]

    def __init__(self, run: RunDirectory, machine: Machine, clock: Callable[[], float], settings: SettingsFile) -> None:
        super().__init__()
        self.run = run
        self.model = RunModel(host_of(run.path))
        self._machine, self._clock, self._settings = _machine_of(run, machine), clock, settings
        self._follower = RunFollower(run)
        self._attention = Attention(run.path.name, clock)
        self._versus = Versus(run)
        self._away_told = False
        self._reading: Reading | None = None
        self._playable = self._reviewable = False
        self._my_order = ""
        self._my_order_at = 0.0
        self._opened = time.time()
        self._steering = Steering(self, self._target)
        self._fast = Throttle(self, FAST_SECONDS, self._show_numbers)
        self._slow = Throttle(self, SLOW_SECONDS, self._show_panes)

    def compose(self) -> ComposeResult:
        yield RunHeader()
        yield Tabs(*(Tab(kind.name.title(), id=f"tab-{kind.name}", classes=kind.classes) for kind in TABS))
        yield AwayPanel()
        yield RunBanner()
        yield RunTabs(Shown(self.run, self._machine, self._settings))
        yield StatusLine()
        yield Footer()

    def on_mount(self) -> None:
        self.query_one(Tabs).can_focus = False
        tick = self.set_interval(SLOW_SECONDS, lambda: self._fast.ask(news=False))
        self.follow(Poller("run", self._follow), Poller("machine", self._measure), tick=tick)

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
        if self._follower.behind:
            return BEHIND_SECONDS
        return POLL_SECONDS if self._follower.live else ENDED_POLL_SECONDS

    def _measure(self) -> float:
        before = self._attention.pay()
        can = can_play(self.run), can_review(self.run)
        self.post_message(self.Measured(self._machine.read(self.run.path), *can, before, self._versus.poll()))
        return MACHINE_SECONDS

    # -- taking what they say --------------------------------------------------------------------------------------

    @on(Followed)
    def _take(self, message: Followed) -> None:
        state, known = self.model.status.state, self._known
        self.model.add(message.news)
        self._tell_alerts(message.news)
        if self.model.status.state != state or message.news.info is not None:
            self.set_class(self.model.is_task, "-task")
            self.set_class(self.model.status.state == "failed", "-failed")
        self.refresh_keys()
        self._steering.stopping.note(self.run.path, self.model.status.state)
        for throttle in (self._fast, self._slow):
            if self._known == known:
                throttle.ask()
            else:
                throttle.hurry()  # what was not there at all waits for nothing

    @property
    def _known(self) -> tuple[bool, bool, bool]:
        """What of the run has been read."""
        return self.model.info is not None, self.model.reading, self.model.steps.newest > 0

    @property
    def _unread(self) -> bool:
        """Whether it is not read to its end yet."""
        return self.model.info is None or self.model.reading

    @on(Measured)
    def _take_reading(self, message: Measured) -> None:
        self._reading = message.reading
        if message.baseline != self.model.baseline:
            self.model.baseline = message.baseline
            self._slow.ask()
        self._tell_away(message.last_seen)
        if (message.playable, message.reviewable) != (self._playable, self._reviewable):
            self._playable, self._reviewable = message.playable, message.reviewable
            self.refresh_bindings()
        self._fast.ask(news=False)

    @on(Steering.Sent)
    def _note_order(self, message: Steering.Sent) -> None:
        self._my_order, self._my_order_at = message.command.id, time.monotonic()

    def _tell_away(self, last_seen: float | None) -> None:
        """Tell once what happened before the run was opened, as soon as all of that is read."""
        if self._away_told or self._unread:
            return
        self._away_told = True
        if (away := run_away.since(self.model, last_seen, self._clock())) is not None:
            panel = self.query_one(AwayPanel)
            panel.show(away)
            self.set_timer(AWAY_SECONDS, panel.close)

    def _tell_alerts(self, news: News) -> None:
        """Toast what happened since the screen was opened and no resume has put behind it; all is in the events."""
        for event in news.events:
            of_now = event.attempt == self.model.history.attempt
            if isinstance(event, Alert) and of_now and event.time >= self._opened:
                severity = "information" if event.level == "info" else event.level
                self.notify(sentence(event, self.key_of), severity=severity, timeout=10, markup=False)
                if event.level != "info":
                    self.post_message(Notice(self.run.path.name, event))

    # -- showing ---------------------------------------------------------------------------------------------------

    @property
    def _tabs(self) -> RunTabs:
        return self.query_one(RunTabs)

    def _show_numbers(self) -> None:
        if not self.is_active or not self.query(RunHeader):
            return  # under another screen every change would paint that one whole; a closing one has no widgets
        now, pane = self._clock(), self._tabs.pane
        self.query_one(RunHeader).show(self.model, now)
        if self.model.reading:
            return
        reading = self._reading
        advice = self.model.advice if self.model.status.state == "running" else None
        if isinstance(pane, RunOverview):
            pane.show_numbers(self.model, self._reading, now)
            reading = None if pane.shows_machine else reading
        if isinstance(pane, EventsPane) or (isinstance(pane, RunOverview) and pane.shows_events):
            advice = None  # it is beside their title
        self.query_one(StatusLine).show(self.model, reading, advice, self._order_in_flight())

    def _order_in_flight(self) -> Order | None:
        """The last order from here, while it is news."""
        if time.monotonic() - self._my_order_at > ORDER_SECONDS:
            return None
        return self.model.order(self._my_order)

    def _show_panes(self) -> None:
        if not self.is_active or not self.query(RunHeader) or self.model.reading:
            return  # a piece of a long history tells of long ago, and all of its rows would be made at each piece
        self.query_one(RunBanner).show(self.model, self.key_of)
        self._tabs.show(self.model)

    def terminal_title(self) -> str:
        return titles.of_run(self.model)

    # -- keys ------------------------------------------------------------------------------------------------------

    def _target(self) -> Target | None:
        model = self.model
        if model.info is None or model.reading:
            return None
        number = model.attempt.number if model.attempt else 0
        return Target(
            self.run, model.info.id, number, model.status.state, model.info.only_stops, model.info.why_no_resume
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        model = self.model
        match action, parameters:
            case "steer", (what,):
                useless = ("resume",) if model.live else ("pause", "continue", "stop", "checkpoint")
                # not greyed: the footer shows what is of use to a live run, or to one that has ended
                return False if what in useless else self._steering.check(parameters)
            case "tab", (name,):
                return not model.is_task or any(kind.of_tasks for kind in TABS if kind.name == name)
            case "change", _:  # a program that is not the cockpit's hears of no weights and no plan
                return not model.is_task and (model.info is None or bool(model.info.engine))
            case "compare", _:
                return not model.is_task
            case "play", _:
                return self._playable  # not greyed: a narrow footer leaves out what most runs never have
            case "thresholds", _:
                return self._reviewable
        return True

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        return self._steering.why_not(parameters) if action == "steer" else ""

    def action_steer(self, action: Action) -> None:
        self._steering.do(action)

    def action_tab(self, name: str) -> None:
        self.query_one(Tabs).active = f"tab-{name}"
        self.query_one(AwayPanel).close()

    @on(Tabs.TabActivated)
    async def _open_tab(self, event: Tabs.TabActivated) -> None:
        name = str(event.tab.id).removeprefix("tab-")
        await self._tabs.open(name)
        self.refresh_bindings()
        self._fast.ask()
        self._show_panes()

    def action_change(self, what: str) -> None:
        self.post_message(self.Steer(self.run, what))

    def action_play(self) -> None:
        self.post_message(self.Play(self.run))

    def action_thresholds(self) -> None:
        self.post_message(self.Thresholds(self.run))

    def action_compare(self) -> None:
        self.post_message(self.Compare(self.run))

    def action_back(self) -> None:
        panel = self.query_one(AwayPanel)
        if panel.there:
            panel.close()
        else:
            self.post_message(self.Back())
