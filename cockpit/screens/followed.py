"""A screen above a run's own that follows the run, shows its curves and sends it orders."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from cockpit.core.config.run_config import read_config
from cockpit.core.metrics.metric_series import Series
from cockpit.core.metrics.run_metrics import Mark, RunMetrics
from cockpit.core.poller import Poller
from cockpit.core.run.follow import News, RunFollower
from cockpit.core.run.model import RunModel
from cockpit.core.run.orders import Order
from cockpit.core.text import plain
from cockpit.screens.changing_keys import ChangingKeysScreen
from cockpit.screens.palette import ActionProvider
from cockpit.screens.unapplied import Answer, Changes, UnappliedScreen
from cockpit.widgets.footer import Footer
from cockpit.widgets.run_header import RunHeader
from cockpit.widgets.throttle import Throttle
from engines.contract import launch
from engines.contract.commands import Command
from engines.contract.errors import UserError
from engines.contract.rundir import RunDirectory

POLL_SECONDS = 0.1
SHOW_SECONDS = 1.0


@dataclass(frozen=True)
class Curves:
    """What the run has logged, as charts show it."""

    series: Mapping[str, Series] = field(default_factory=dict)
    marks: Sequence[Mark] = ()


class FollowedRunScreen(ChangingKeysScreen):
    """A subclass composes its `body`, takes the config in `begin` and shows what is known in `show`."""

    COMMANDS = {ActionProvider}
    BACK = Binding("escape", "back", "back", id="run.back", tooltip="Back to the run; it goes on")

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
        self.model = RunModel()
        self.curves = Curves()
        self._clock = clock
        self._follower, self._metrics = RunFollower(run), RunMetrics(run, run.path.name)
        self._throttle = Throttle(self, SHOW_SECONDS, self._show)
        self._poller = Poller("run", self._follow)
        self._ready = False
        self._sent: list[Command] = []
        self._outbox: deque[Command] = deque()
        self._sending = threading.Lock()

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
        self.run_worker(self._read, thread=True, group="config")

    def on_unmount(self) -> None:
        self._poller.stop()

    def on_screen_suspend(self) -> None:
        self._poller.pause()

    def on_screen_resume(self) -> None:
        self._poller.resume()
        self._throttle.ask()

    def on_resize(self) -> None:
        self._throttle.ask()

    def _read(self) -> None:
        try:
            self.post_message(self.Read(read_config(self.run).tree))
        except UserError as error:
            self.app.call_from_thread(self.refuse, str(error))

    @on(Read)
    def _begin(self, message: Read) -> None:
        self.begin(message.config)
        self._ready = True
        self._poller.start()

    def _follow(self) -> float:
        news = self._follower.poll()
        changed = self._metrics.poll()
        if news is not None or changed:
            curves = Curves(self._metrics.series(), self._metrics.marks()) if changed else None
            self.post_message(self.Followed(news, curves))
        return POLL_SECONDS if self._follower.live or self._follower.behind else SHOW_SECONDS

    @on(Followed)
    def _take(self, message: Followed) -> None:
        if message.news is not None:
            self.model.add(message.news)
        if message.curves is not None:
            self.curves = message.curves
        self._throttle.ask()

    def _show(self) -> None:
        if self._ready and self.is_active and self.query(RunHeader):
            self.query_one(RunHeader).show(self.model, self._clock())
            self.show()

    def notify_style_update(self) -> None:
        """What a subclass shows may be in the colours and with the signs of the look before."""
        super().notify_style_update()
        self.call_later(self._show)  # at once: a second of the throttle would be half in one theme, half in the other

    # -- orders ----------------------------------------------------------------------------------------------------

    @property
    def attempt(self) -> int:
        """The one that is to hear an order."""
        return self.model.attempt.number if self.model.attempt else 0

    @property
    def can_order(self) -> bool:
        return self.model.live and self.attempt > 0 and self.model.status.state != "stopping"

    @property
    def why_no_order(self) -> str:
        """A sentence; empty where the run can be given orders."""
        if self.can_order:
            return ""
        return f"The run is {self.model.status.state}: it cannot be applied."

    def send(self, command: Command) -> None:
        """Append it to the run's command log, in a thread that outlives the screen: it may be left at once."""
        self._sent.append(command)
        self._outbox.append(command)
        self.app.run_worker(self._send_oldest, thread=True, group="orders")

    def _send_oldest(self) -> None:
        """Of several threads the first to come sends the first order: the last one given is the one that holds."""
        with self._sending:
            try:
                launch.send(self.run, self._outbox.popleft())
            except OSError as error:
                self.app.call_from_thread(self.refuse, f"The order could not be sent: {error.strerror}.")

    def sent(self, *kinds: type[Command]) -> list[Command]:
        """Those of these kinds that were sent from here and not refused, the oldest first."""
        orders = ((one, self.model.order(one.id)) for one in self._sent if isinstance(one, kinds))
        return [one for one, order in orders if not (order and order.refused)]

    def orders(self, *kinds: type[Command]) -> list[Order]:
        """Those of these kinds so far, the newest first."""
        found = [one for one in self.model.notable if isinstance(one, Order) and isinstance(one.command, kinds)]
        return found[::-1]

    def told(self, order: Order, asked: str) -> Content:
        """What was asked for and what became of it, in a colour that says so too."""
        outcome = order.outcome_with(self.attempt if self.model.live else None)
        bad = outcome.startswith(("refused", "not applied"))
        colour = "$bad" if bad else "$good" if outcome.startswith("applied") else "$accent"
        return Content.assemble((f"{asked}: ", "$quiet"), (plain(outcome), colour))

    def refuse(self, sentence: str) -> None:
        self.notify(plain(sentence), severity="error", timeout=10, markup=False)

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
