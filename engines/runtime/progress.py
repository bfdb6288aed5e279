"""How far long work is, as events of the run, by whoever does it: a task, or a project that reads its data."""

from __future__ import annotations

import time

from engines.contract.events import EventWriter, Progress
from engines.runtime.listener import CommandListener

SECONDS = 0.25


class StopRequested(Exception):
    """A user asked for a stop: leave what is finished in order and let this pass."""


class ProgressEvents:
    """Called as `progress(done, total, unit)`."""

    def __init__(self, events: EventWriter, listener: CommandListener) -> None:
        self._events, self._listener = events, listener
        self._shown = 0.0

    def __call__(self, done: int, total: int, unit: str) -> None:
        """Write it down at most a few times a second, and always the last. Raises `StopRequested` after a stop."""
        if done >= total or time.monotonic() - self._shown > SECONDS:
            self._shown = time.monotonic()
            self._events.write(Progress(done=done, total=total, unit=unit))
        self.check()

    def check(self) -> None:
        """Raises `StopRequested` after a stop."""
        if self._listener.stop_requested:
            raise StopRequested
