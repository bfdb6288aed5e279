"""How far long work is, as events of the run: by a task, by a project that reads its data, by an evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable

from engines.contract.events import Event, EventWriter, Progress
from engines.runtime.listener import CommandListener

SECONDS = 0.25


class StopRequested(Exception):
    """A user asked for a stop: leave what is finished in order and let this pass."""


class Throttled:
    """Writes a `Progress` at most a few times a second, and always the last one."""

    def __init__(self, write: Callable[[Event], None]) -> None:
        self._write = write
        self._last = 0.0

    def __call__(self, done: float, total: float, unit: str, *, step: int = 0) -> None:
        if done >= total or time.monotonic() - self._last > SECONDS:
            self._last = time.monotonic()
            self._write(Progress(done=done, total=total, unit=unit, step=step))


class ProgressEvents:
    """Called as `progress(done, total, unit)`."""

    def __init__(self, events: EventWriter, listener: CommandListener) -> None:
        self._listener, self._write = listener, Throttled(events.write)

    def __call__(self, done: int, total: int, unit: str) -> None:
        """Write it down. Raises `StopRequested` after a stop."""
        self._write(done, total, unit)
        self.check()

    def check(self) -> None:
        """Raises `StopRequested` after a stop."""
        if self._listener.stop_requested:
            raise StopRequested
