"""Looking again and again in a thread of its own. Imports nothing, since the first screen starts with it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Poller(threading.Thread):
    """Calls `look` again and again until stopped, unless paused; `look` gives the seconds until the next call."""

    def __init__(self, name: str, look: Callable[[], float]) -> None:
        super().__init__(name=name, daemon=True)
        self._look = look
        self._stopping = threading.Event()
        self._going = threading.Event()
        self._going.set()

    def run(self) -> None:
        while not self._stopping.wait(self._look()):
            self._going.wait()

    def pause(self) -> None:
        """Look no more until `resume`."""
        self._going.clear()

    def resume(self) -> None:
        self._going.set()

    def stop(self) -> None:
        """Ask it to end; returns at once."""
        self._stopping.set()
        self._going.set()
