"""What every reader of a log does, and the two that most formats need: line after line, and a document at once."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cockpit.core.foreign.rows import Row
from cockpit.core.foreign.unpacking import UnpackedLines, unpack

UNREADABLE = (ValueError, ArithmeticError, RecursionError)
"""What parsing a damaged line, record or document raises: also of numbers too large, and of nesting too deep."""
LARGEST_DOCUMENT = 1 << 28
"""Bytes of a document, unpacked: it is read as one, and would take several times as many."""


@dataclass(frozen=True)
class News:
    """Rows since the last call; `replaces` when they replace all that came before."""

    rows: list[Row]
    replaces: bool = False


class Reader(Protocol):
    """Follows one file."""

    def poll(self) -> News | None:
        """What is new, None when nothing is. Raises OSError for a file that cannot be read now."""
        ...

    def problems(self) -> list[str]:
        """Damage met so far, counted, in sentences."""
        ...


DIGITS = tuple(b"0123456789")
Parse = Callable[[bytes], Row | None]
"""Gives a line's row, None for a line that is none; raises ValueError for a damaged one."""


def never_whole(line: bytes) -> bool:
    """Of lines that only their newline ends: a number may go on."""
    return False


class Misfit(ValueError):
    """A damaged line, with the reason in words for a user."""


class LineReader:
    """Reads a log of lines; `make_parse` gives a parser that has seen nothing, for a file read from its start.

    `is_whole` tells whether a last line without its newline can be no half one: many programs write none behind it.
    """

    def __init__(
        self, path: Path, make_parse: Callable[[], Parse], is_whole: Callable[[bytes], bool] = never_whole,
        follow: Callable[[Path], UnpackedLines] = UnpackedLines,
    ) -> None:  # fmt: skip
        self._lines = follow(path)
        self._make_parse, self._is_whole = make_parse, is_whole
        self._restarts = 0
        self._begin()

    def _begin(self) -> None:
        self._parse = self._make_parse()
        self._line = 0
        self._rows = 0
        self._damaged = 0
        self._first_damaged = 0
        self._why = ""
        """What is wrong with the first damaged line, where its parser says so."""
        self._with_digits = 0
        self._taken = b""
        """A whole last line that was taken before its newline came."""

    def poll(self) -> News | None:
        lines, unfinished = self._lines, self._lines.unfinished
        new = lines.poll()
        replaced = lines.restarts != self._restarts
        if replaced:
            self._restarts = lines.restarts
            self._begin()
        if not new and not replaced and lines.unfinished == unfinished:
            return None
        if new and self._taken and new[0].rstrip() == self._taken.rstrip():
            new = new[1:]
        if new:
            self._taken = b""
        if not self._taken and self._is_whole(lines.partial):
            self._taken = lines.partial
            new = [*new, lines.partial]
        rows = [row for line in new if (row := self._row(line)) is not None]
        self._rows += sum(bool(row.values) for row in rows)
        return News(rows, replaced)

    def _row(self, line: bytes) -> Row | None:
        self._line += 1
        if not line.strip():
            return None
        if not self._rows:  # only asked of a log without a row
            self._with_digits += any(map(line.__contains__, DIGITS))
        try:
            return self._parse(line)
        except UNREADABLE as error:
            self._damaged += 1
            if not self._first_damaged and isinstance(error, Misfit):
                self._why = f": {error}"
            self._first_damaged = self._first_damaged or self._line
            return None

    def problems(self) -> list[str]:
        found = []
        if self._damaged:
            what = "damaged line" if self._damaged == 1 else "damaged lines"
            found.append(f"{self._damaged} {what} skipped, the first is line {self._first_damaged}{self._why}.")
        elif self._line > 1 and not self._rows:
            found.append(self._nothing())
        if sentence := getattr(self._parse, "left_out", ""):
            found.append(sentence)
        if self._lines.unfinished and self._lines.partial != self._taken:
            found.append(unfinished("line", self._lines.unfinished))
        return found + not_unpacked(self._lines.damage) + rewritten(self._restarts)

    def _nothing(self) -> str:
        """Of lines none of which gave a row: what they hold all the same."""
        if 2 * self._with_digits < self._line:
            return f"None of its {self._line:,} lines contains a number."
        return (
            f"{self._with_digits:,} of its {self._line:,} lines hold numbers, in a form that is not read, such as a "
            "printed table: log CSV or JSON lines instead, or lines such as `step 10 loss 0.5`."
        )


def unfinished(what: str, size: int) -> str:
    """The note on a last line or record that is only half there."""
    return f"Last {what} is incomplete ({size} bytes): waiting for the rest."


def rewritten(times: int) -> list[str]:
    """The note on a file that was read again from its start."""
    often = "" if times == 1 else f" {times} times"
    return [f"The file was truncated or rewritten{often}; read again from its start."] if times else []


def not_unpacked(damage: str) -> list[str]:
    """The note on a packed file that is damaged."""
    return [f"The compressed file is damaged ({damage}); what comes before the damage is shown."] if damage else []


class NotNow(Exception):
    """A file cannot be read as it is now; the message is the note on it, empty where there is nothing to say."""


class WholeReader:
    """Reads a file that is replaced whole at every save, again whenever it has changed."""

    def __init__(self, path: Path, read: Callable[[Path], list[Row]]) -> None:
        """`read` gives all rows, and raises `NotNow`: what was read before then stays."""
        self._path, self._read = path, read
        self._seen: tuple[int, int, int] | None = None
        self._problem = ""

    def poll(self) -> News | None:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        if stamp == self._seen:
            return None
        try:
            news, self._problem = News(self._read(self._path), replaces=True), ""
        except NotNow as error:
            news, self._problem = News([]), str(error)
        self._seen = stamp  # not where the file could not be read at all
        return news

    def problems(self) -> list[str]:
        return [self._problem] if self._problem else []


def document_reader(path: Path, rows_of: Callable[[Any], Iterable[Row]]) -> WholeReader:
    """A reader of a JSON document; `rows_of` raises ValueError for one that is no log."""

    def read(path: Path) -> list[Row]:
        data = path.read_bytes()
        try:
            document = json.loads(unpack(data, LARGEST_DOCUMENT).removeprefix(BOM_UTF8).decode("utf-8", "replace"))
        except UNREADABLE as error:
            raise NotNow(
                f"The file is incomplete ({error}); it is read again when it changes." if data else ""
            ) from None
        try:
            return list(rows_of(document))
        except UNREADABLE as error:
            raise NotNow(f"The file is not a log: {error}; it is read again when it changes.") from None

    return WholeReader(path, read)
