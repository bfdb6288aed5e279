"""What a screen looks at again and again, it looks at only while it is seen."""

from __future__ import annotations

from collections.abc import Sequence

from textual.screen import Screen
from textual.timer import Timer

from cockpit.core.poller import Poller
from cockpit.screens.confirm import StopHarder


class PollingScreen(Screen[None]):
    """A screen that hands over its pollers, and a timer, by `follow`."""

    def __init__(self) -> None:
        super().__init__()
        self._pollers: Sequence[Poller] = ()
        self._tick: Timer | None = None
        self._seen = True

    def follow(self, *pollers: Poller, tick: Timer | None = None) -> None:
        """Run `pollers` and `tick` from now on."""
        self._pollers, self._tick = pollers, tick
        for poller in pollers:
            poller.start()
        if not self._seen:
            self._pause()

    def on_screen_suspend(self) -> None:
        """Under another screen everything that happens here, even to no effect, would paint that one whole, 15 KB.

        Only the question how to stop is worth it: it is taken back when the run ends.
        """
        if not isinstance(self.app.screen, StopHarder):
            self._seen = False
            self._pause()

    def _pause(self) -> None:
        if self._tick is not None:
            self._tick.pause()
        for poller in self._pollers:
            poller.pause()

    def on_screen_resume(self) -> None:
        self._seen = True
        if self._tick is not None:
            self._tick.resume()
        for poller in self._pollers:
            poller.resume()

    def on_unmount(self) -> None:
        for poller in self._pollers:
            poller.stop()
