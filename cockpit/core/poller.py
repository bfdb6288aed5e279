"""Looking again and again in a thread of its own. Imports nothing, since the first screen starts with it."""

from __future__ import annotations

import threading
from collections.abc import Callable

AGAIN_SECONDS = 1.0
"""Until the next look after a disk that did not answer."""


class Poller(threading.Thread):
    """Calls `look` again and again until stopped, unless paused; `look` gives the seconds until the next call.

    A network volume that fails once must not freeze what is shown: after an OSError it looks again.
    """

    def __init__(self, name: str, look: Callable[[], float]) -> None:
        super().__init__(name=name, daemon=True)
        self._look = look
        self._stopped = False
        self._woken = threading.Event()
        self._going = threading.Event()
        self._going.set()

    def run(self) -> None:
        while not self._stopped:
            self._woken.wait(self._seconds())
            self._woken.clear()
            self._going.wait()

    def _seconds(self) -> float:
        try:
            return self._look()
        except OSError:
            return AGAIN_SECONDS

    def pause(self) -> None:
        """Look no more until `resume`."""
        self._going.clear()

    def resume(self) -> None:
        self._going.set()

    def hurry(self) -> None:
        """Look again at once: a person asked for something else."""
        self._woken.set()

    def stop(self) -> None:
        """Ask it to end; returns at once."""
        self._stopped = True
        self._woken.set()
        self._going.set()
