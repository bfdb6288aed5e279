"""Orders that a screen gives to its run, in the order in which they were given, and what became of them."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

from textual.content import Content
from textual.screen import Screen

from cockpit.core.hosts import links
from cockpit.core.run.model import RunModel
from cockpit.core.run.orders import Order
from cockpit.core.text import plain
from cockpit.screens.working import refuse
from engines.basics.errors import UserError
from engines.contract.commands import Command
from engines.contract.rundir import RunDirectory


@dataclass
class GivenOrders:
    """Orders from `screen` to `run`, of which `model` says how it stands."""

    screen: Screen[None]
    run: RunDirectory
    model: RunModel
    _given: list[Command] = field(default_factory=list)
    _outbox: deque[Command] = field(default_factory=deque)
    _sending: threading.Lock = field(default_factory=threading.Lock)

    @property
    def attempt(self) -> int:
        """The one that is to hear an order."""
        return self.model.attempt.number if self.model.attempt else 0

    @property
    def can(self) -> bool:
        """Whether the run can be given orders now."""
        return self.model.live and self.attempt > 0 and self.model.status.state != "stopping"

    @property
    def why_not(self) -> str:
        """A sentence; empty where the run can be given orders."""
        return "" if self.can else f"The run is {self.model.status.state}: changes cannot be applied."

    # -- giving ----------------------------------------------------------------------------------------------------

    def give(self, command: Command) -> None:
        """Append it to the run's command log, in a thread that outlives the screen: it may be left at once."""
        self._given.append(command)
        self._outbox.append(command)
        self.screen.app.run_worker(self._send_oldest, thread=True, group="orders")

    def _send_oldest(self) -> None:
        """Of several threads the first to come sends the first order: the last one given is the one that holds."""
        with self._sending:
            try:
                links.send(self.run, self._outbox.popleft())
            except (UserError, OSError) as error:
                why = f"The command could not be sent: {error.strerror}." if isinstance(error, OSError) else str(error)
                self.screen.app.call_from_thread(refuse, self.screen, why)

    # -- what became of them ---------------------------------------------------------------------------------------

    def given(self, *kinds: type[Command]) -> list[Command]:
        """Those of these kinds that were given here and not refused, the oldest first."""
        orders = ((one, self.model.order(one.id)) for one in self._given if isinstance(one, kinds))
        return [one for one, order in orders if not (order and order.refused)]

    def known(self, *kinds: type[Command]) -> list[Order]:
        """Those of these kinds that the run has been given, from wherever, the newest first."""
        found = [one for one in self.model.notable if isinstance(one, Order) and isinstance(one.command, kinds)]
        return found[::-1]

    def told(self, order: Order, asked: str) -> Content:
        """What was asked for and what became of it, in a colour that says so too."""
        may_live = self.model.live or self.model.status.state == "stale"
        outcome = order.outcome_with(self.attempt if may_live else None)
        bad = outcome.startswith(("refused", "not applied"))
        colour = "$bad" if bad else "$good" if outcome.startswith("applied") else "$accent"
        return Content.assemble((f"{asked}: ", "$quiet"), (plain(outcome), colour))
