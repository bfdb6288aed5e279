"""Receive fast, show slowly: a change is shown at once, the next ones at most every so often."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.message_pump import MessagePump


class Throttle:
    """Calls `show` when asked to, but never twice within `seconds`; what was asked meanwhile is shown then."""

    def __init__(self, owner: MessagePump, seconds: float, show: Callable[[], None]) -> None:
        self._owner = owner
        self._seconds = seconds
        self._show = show
        self._last = -seconds
        self._due = False

    def ask(self, *, news: bool = True) -> None:
        """Show what is there, at the latest `seconds` from now.

        What goes on by itself, as a clock, is no `news`: those that come just behind it need not wait for it.
        """
        if self._due:
            return
        wait = self._last + self._seconds - time.monotonic()
        if wait > 0:
            self._due = True
            self._owner.set_timer(wait, self._fire)
        elif news:
            self._fire()
        else:
            self._show()

    def hurry(self) -> None:
        """Show it now, however short a time ago something was shown."""
        self._fire()

    def _fire(self) -> None:
        self._due = False
        self._last = time.monotonic()
        self._show()
