"""What the list of runs says of the other machines: which of them do not answer, and that they do again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import Screen

from cockpit.core.hosts.links import links

if TYPE_CHECKING:
    from cockpit.core.hosts.link import Link

NOTICE_SECONDS = 20


class HostNews:
    """The state of every link, and notices on `screen` when one changes."""

    def __init__(self, screen: Screen[None]) -> None:
        self._screen = screen
        self._links = links()
        self.folders = [link.folder for link in self._links]
        self.words: tuple[str, ...] = ()
        """What is wrong with each, in a few words."""
        self._noticed: dict[Link, str] = {}

    def poll(self) -> bool:
        """Look again; whether anything changed."""
        before = self.words
        self.words = tuple(filter(None, (link.in_short for link in self._links)))
        return self.words != before

    def notify(self) -> None:
        """Say which host has stopped answering, why, and which answers again."""
        for link in self._links:
            before, now = self._noticed.get(link, ""), link.problem
            if now and not before:
                self._screen.notify(now, severity="warning", timeout=NOTICE_SECONDS, markup=False)
            elif before and link.standing.fresh and not now:
                self._screen.notify(f"{link.host.name} answers again.", markup=False)
            self._noticed[link] = now or ("" if link.standing.fresh else before)
