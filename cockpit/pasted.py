"""Pasted text is text: nothing of it acts as a key.

Of an escape inside a bracketed paste, as in coloured words copied from a log, Textual's parser takes what follows for
the rest of a key, and gives it as keys where it is none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.driver import Driver
from textual.message import Message

from cockpit.core.text import ESCAPE


class PasteParser(XTermParser):
    """Gives Textual's parser a paste when it is whole, without its escapes."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._pasted: str | None = None
        """What has come of a paste whose end has not."""
        self._passed = ""
        """The last characters before: a start may come in pieces."""

    def feed(self, data: str) -> Iterator[Message]:
        if not data:
            yield from super().feed(data)  # the end of all input
        while data:
            if self._pasted is None:
                end = self._end_of_start(data)
                yield from super().feed(data[:end])
            else:
                pasted, end_mark, rest = (self._pasted + data).partition(BRACKETED_PASTE_END)
                end = len(data) - len(rest)
                self._pasted = None if end_mark else pasted
                if end_mark:
                    yield from super().feed(ESCAPE.sub("", pasted).replace("\x1b", "") + end_mark)
            data = data[end:]

    def _end_of_start(self, data: str) -> int:
        """Of `data` what is outside of a paste, up to where one has started."""
        seen = self._passed + data
        before, start, _pasted = seen.partition(BRACKETED_PASTE_START)
        if not start:
            self._passed = seen[1 - len(BRACKETED_PASTE_START) :]
            return len(data)
        end = len(before) + len(start) - len(self._passed)
        self._pasted, self._passed = "", ""
        return end


def take_pastes_whole(driver: type[Driver]) -> None:
    """Have every `driver` of its module read keys by `PasteParser`: none offers a place to say by which."""
    names = vars(sys.modules[driver.__module__])
    if "XTermParser" in names:
        names["XTermParser"] = PasteParser
