"""A pane that looks at a run's files only while it is seen: in a thread of its own, and not under another screen."""

from __future__ import annotations

from textual.containers import Vertical

from cockpit.core.poller import Poller

UNSEEN_SECONDS = 0.2


class Pane(Vertical):
    """A subclass looks in `look` and hands over what it found by a message."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._poller: Poller | None = None
        self.active = False

    def look(self) -> float:
        """In the poller's thread: see what is new; gives the seconds until the next look."""
        raise NotImplementedError

    def activate(self) -> None:
        """It is shown now."""
        self.active = True
        if self._poller is None:
            self._poller = Poller(self.id or "pane", self._look_if_seen)
            self._poller.start()
        else:
            self._poller.resume()

    def deactivate(self) -> None:
        """It is hidden now."""
        self.active = False
        if self._poller is not None:
            self._poller.pause()

    def on_unmount(self) -> None:
        if self._poller is not None:
            self._poller.stop()

    def _look_if_seen(self) -> float:
        """What changes under another screen would paint that one whole."""
        return self.look() if self.is_attached and self.screen.is_active else UNSEEN_SECONDS
