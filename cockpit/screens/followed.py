"""A screen above a run's own that follows the run, shows its curves and sends it orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.widget import Widget

from cockpit.core.config.run_config import read_config
from cockpit.core.hosts.links import host_of
from cockpit.core.metrics.run_metrics import RunMetrics
from cockpit.core.poller import Poller
from cockpit.core.run.follow import BEHIND_SECONDS, News, RunFollower
from cockpit.core.run.model import RunModel
from cockpit.core.series import Mark, Series
from cockpit.screens.changing_keys import ChangingKeysScreen
from cockpit.screens.given_orders import GivenOrders
from cockpit.screens.palette import ActionProvider
from cockpit.screens.polling import PollingScreen
from cockpit.screens.unapplied import Answer, Changes, UnappliedScreen
from cockpit.screens.working import in_thread
from cockpit.widgets.footer import Footer
from cockpit.widgets.run_header import RunHeader
from cockpit.widgets.throttle import Throttle
from engines.contract.rundir import RunDirectory

POLL_SECONDS = 0.1
SHOW_SECONDS = 1.0


@dataclass(frozen=True)
class Curves:
    """What the run has logged, as charts show it."""

    series: Mapping[str, Series] = field(default_factory=dict)
    marks: Sequence[Mark] = ()


class FollowedRunScreen(PollingScreen, ChangingKeysScreen):
    """A subclass composes its `body`, takes the config in `begin` and shows what is known in `show`."""

    COMMANDS = {ActionProvider}
    BACK = Binding("escape", "back", "back", id="run.back", tooltip="Back to the run, which keeps running")

    @dataclass
    class Read(Message):
        """The config of the run."""

        config: Mapping[str, Any]

    @dataclass
    class Followed(Message):
        news: News | None
        curves: Curves | None

    def __init__(self, run: RunDirectory, clock: Callable[[], float]) -> None:
        super().__init__()
        self.run = run
        self.model = RunModel(host_of(run.path))
        self.curves = Curves()
        self._clock = clock
        self._follower, self._metrics = RunFollower(run), RunMetrics(run, run.path.name)
        self._throttle = Throttle(self, SHOW_SECONDS, self._show)
        self._ready = False
        self.orders = GivenOrders(self, run, self.model)

    # -- for subclasses --------------------------------------------------------------------------------------------

    def body(self) -> Iterator[Widget]:
        """What stands between header and footer."""
        raise NotImplementedError

    def begin(self, config: Mapping[str, Any]) -> None:
        """The config has been read."""
        raise NotImplementedError

    def show(self) -> None:
        """Show what is known, at most once a second; what has not changed must cost nothing."""
        raise NotImplementedError

    def unapplied(self) -> Changes | None:
        """What the person has changed and not applied."""
        raise NotImplementedError

    def apply(self) -> None:
        """Order all of that."""
        raise NotImplementedError

    # -- following -------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield RunHeader()
        yield from self.body()
        yield Footer()

    def on_mount(self) -> None:
        in_thread(self, lambda: self.post_message(self.Read(read_config(self.run).tree)))

    def on_screen_resume(self) -> None:
        self._throttle.ask(news=False)

    def on_resize(self) -> None:
        self._throttle.ask(news=False)  # at the first one nothing is known: what comes then must not wait for it

    @on(Read)
    def _begin(self, message: Read) -> None:
        self.begin(message.config)
        self._ready = True
        self.follow(Poller("run", self._follow))

    def _follow(self) -> float:
        news = self._follower.poll()
        changed = not self._follower.reading and self._metrics.poll()
        if news is not None or changed:
            curves = Curves(self._metrics.series(), self._metrics.marks()) if changed else None
            self.post_message(self.Followed(news, curves))
        if self._follower.behind:
            return BEHIND_SECONDS
        return POLL_SECONDS if self._follower.live else SHOW_SECONDS

    @on(Followed)
    def _take(self, message: Followed) -> None:
        was_reading = self.model.reading
        if message.news is not None:
            self.model.add(message.news)
        if message.curves is not None:
            self.curves = message.curves
        if was_reading and not self.model.reading:
            self._throttle.hurry()
        else:
            self._throttle.ask()

    def _show(self) -> None:
        if self.is_active and self.query(RunHeader):
            self.query_one(RunHeader).show(self.model, self._clock())
            if self._ready and not self.model.reading:
                self.show()

    def notify_style_update(self) -> None:
        """What a subclass shows may be in the colours and with the signs of the look before."""
        super().notify_style_update()
        self.call_later(self._show)  # at once: a second of the throttle would be half in one theme, half in the other

    # -- leaving ---------------------------------------------------------------------------------------------------

    def action_back(self) -> None:
        """Ask first where something would be lost."""
        if (changes := self.unapplied()) is None:
            self.dismiss()
        else:
            self.app.push_screen(UnappliedScreen(changes), self._leave)

    def _leave(self, answer: Answer | None) -> None:
        if answer == "apply":
            self.apply()
        if answer is not None:
            self.dismiss()
