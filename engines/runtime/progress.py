"""How far long work is, told as often as it is worth reading."""

from __future__ import annotations

import time
from collections.abc import Callable

from engines.contract.events import Event, Progress

SECONDS = 0.25


class Told:
    """Writes a `Progress` at most a few times a second, and always the last one."""

    def __init__(self, write: Callable[[Event], None]) -> None:
        self._write = write
        self._last = 0.0

    def __call__(self, done: float, total: float, unit: str, *, step: int = 0) -> None:
        if done >= total or time.monotonic() - self._last > SECONDS:
            self._last = time.monotonic()
            self._write(Progress(done=done, total=total, unit=unit, step=step))
