"""Logs of binary records, each checked by a sum of its own: damage costs the records that it hit and no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from cockpit.core.foreign.reader import UNREADABLE, Misfit, News, not_unpacked, rewritten, unfinished
from cockpit.core.foreign.rows import Row
from cockpit.core.foreign.unpacking import AT_ONCE, UnpackedBytes


class Splitter(Protocol):
    """Cuts a stream of bytes into records; a torn one waits for its end."""

    damaged: int
    """Places where bytes were no records."""

    @property
    def unfinished(self) -> int:
        """Bytes of a record that waits for its end."""
        ...

    def feed(self, data: bytes) -> list[bytes]:
        """The data of the records that are whole now."""
        ...


class RecordReader:
    """Follows a file; `row_of` gives a record's row, None of one without, and raises ValueError for a damaged one."""

    def __init__(
        self, path: Path, make_splitter: Callable[[], Splitter], row_of: Callable[[bytes], Row | None],
        at_once: int = AT_ONCE,
    ) -> None:  # fmt: skip
        """`at_once` bytes are read in one call."""
        self._bytes = UnpackedBytes(path, at_once)
        self._make_splitter, self._row_of = make_splitter, row_of
        self._restarts = 0
        self._begin()

    def _begin(self) -> None:
        self._records = self._make_splitter()
        self._unreadable = 0
        self._why = ""
        """What is wrong with the first of them, where its kind says so."""

    def poll(self) -> News | None:
        data = self._bytes.poll_bytes()
        replaced = self._bytes.restarts != self._restarts
        if replaced:
            self._restarts = self._bytes.restarts
            self._begin()
        if not data and not replaced:
            return None
        return News([row for record in self._records.feed(data) if (row := self._row(record)) is not None], replaced)

    def _row(self, record: bytes) -> Row | None:
        try:
            return self._row_of(record)
        except UNREADABLE as error:
            self._unreadable += 1
            if not self._why and isinstance(error, Misfit):
                self._why = f": {error}"
            return None

    def problems(self) -> list[str]:
        found = []
        if damaged := self._records.damaged + self._unreadable:
            found.append(f"{damaged} damaged records skipped{self._why}.")
        if self._records.unfinished:
            found.append(unfinished("record", self._records.unfinished))
        return found + not_unpacked(self._bytes.damage) + rewritten(self._restarts)
