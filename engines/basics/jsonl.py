"""Reading append-only logs of one JSON object a line (`line_writer` writes them): a reader that survives anything.

It takes whole lines by byte offset, reads no byte twice, keeps going over damage and counts it, and starts again when
the file was truncated or replaced.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from engines.basics.reading import regular

Record = TypeVar("Record")
BLOCK = 1 << 20
PIECE = 1 << 24
"""Bytes of a long file that are in memory at once while it is read to its end."""
KNOWN_AGAIN = 64
LONGEST_LINE = 1 << 25
"""Bytes; what is longer, such as a binary file taken for a log, is damage and not kept."""


class ByteFollower:
    """Gives the bytes that were appended to a file since the last call. A missing file is an empty one.

    A file that was truncated, replaced or written again in place is given again from its start. `at_once` bounds what
    one call gives of a long file. Raises OSError, also for what is no regular file.
    """

    def __init__(self, path: Path, at_once: int | None = None) -> None:
        self.path = path
        self.restarts = 0
        """Times the file was found truncated or replaced and read again from its start."""
        self.behind = False
        """Whether the last call left something of the file for the next."""
        self._at_once = at_once
        self._offset = 0
        self._inode: int | None = None
        self._last = b""
        """The end of what was read: a file that holds something else there was written again."""

    def poll_bytes(self) -> bytes:
        """What is new, empty when nothing is."""
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            self._inode = None  # a new file may get the old one's inode
            self.behind = False
            return b""
        if not stat.S_ISREG(status.st_mode):
            os.close(regular(str(self.path), os.O_RDONLY))  # raises why not
        size = status.st_size
        if self._offset and (status.st_ino != self._inode or size < self._offset):
            self._restart()
        self._inode = status.st_ino
        if size == self._offset:
            self.behind = False
            return b""
        if self._last and not self._continues():
            self._restart()
        data = self._read(size if self._at_once is None else min(size, self._offset + self._at_once))
        self._offset += len(data)
        self.behind = self._offset < size
        self._last = (self._last + data[-KNOWN_AGAIN:])[-KNOWN_AGAIN:]
        return data

    def _restart(self) -> None:
        self.restarts += 1
        self._offset, self._last = 0, b""

    def _continues(self) -> bool:
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb", 0, opener=regular) as file:
            file.seek(self._offset - len(self._last))
            return file.read(len(self._last)) == self._last
        return False

    def _read(self, end: int) -> bytes:
        parts = []
        position = self._offset
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb", 0, opener=regular) as file:
            file.seek(position)
            while position < end and (part := file.read(min(BLOCK, end - position))):
                parts.append(part)
                position += len(part)
        return b"".join(parts)


class LineFollower(ByteFollower):
    """Gives the whole lines that were appended to a file since the last call."""

    def __init__(self, path: Path, at_once: int | None = None) -> None:
        super().__init__(path, at_once or PIECE)
        self._to_the_end = at_once is None
        self.partial = b""
        """The last line as far as it is there, until its end comes; of one that is too long the beginning."""
        self._dropped = 0

    @property
    def unfinished(self) -> int:
        """Bytes of a last line that waits for its end."""
        return len(self.partial) + self._dropped

    def poll(self) -> list[bytes]:
        """New whole lines, without their newlines. An unfinished last line waits for its end.

        Of a line longer than `LONGEST_LINE` a part is given, which no parser takes for a record.
        """
        lines = self._piece()
        while self._to_the_end and self.behind:
            restarts = self.restarts
            more = self._piece()
            lines = lines + more if self.restarts == restarts else more
        return lines

    def _piece(self) -> list[bytes]:
        """The lines of what one read gives."""
        restarts = self.restarts
        data = self.poll_bytes()
        if self.restarts != restarts:
            self.partial, self._dropped = b"", 0
        if self._dropped and b"\n" not in data:  # of a line that is too long already
            self._dropped += len(data)
            return []
        if not data:
            return []
        *lines, self.partial = (self.partial + data).split(b"\n")
        if lines:
            self._dropped = 0
        if len(self.partial) > LONGEST_LINE:
            self._dropped += len(self.partial) - KNOWN_AGAIN
            self.partial = self.partial[:KNOWN_AGAIN]
        return lines


@dataclass(frozen=True)
class Damage:
    """A line that is not a record: its number (from 1) and first bytes."""

    line: int
    start: bytes


def damage_in(file: str, damage: Sequence[Damage]) -> str:
    """`3 bad lines in events.jsonl, the first is line 412`; empty where there is none."""
    match len(damage):
        case 0:
            return ""
        case 1:
            return f"1 bad line in {file}, line {damage[0].line:,}"
        case count:
            return f"{count:,} bad lines in {file}, the first is line {damage[0].line:,}"


class RecordFollower(Generic[Record]):
    """Follows a log and decodes each line; lines that do not decode are counted in `damage`, never fatal."""

    def __init__(self, path: Path, decoder: msgspec.json.Decoder[Record], at_once: int | None = None) -> None:
        self._lines = LineFollower(path, at_once)
        self._decoder = decoder
        self._line = 0
        self._restarts = 0
        self.damage: list[Damage] = []

    @property
    def restarts(self) -> int:
        return self._lines.restarts

    @property
    def behind(self) -> bool:
        """Whether there is more to be read than the last call gave."""
        return self._lines.behind

    def poll(self) -> list[Record]:
        """The records appended since the last call (all of them again after a restart)."""
        lines = self._lines.poll()
        if self._lines.restarts != self._restarts:
            self._restarts, self._line = self._lines.restarts, 0
            self.damage.clear()
        records = []
        for line in lines:
            self._line += 1
            if not line.strip():
                continue  # the newline that ended a torn line
            try:
                records.append(self._decoder.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self.damage.append(Damage(self._line, line[:80]))
        return records


def last_lines(path: Path, count: int, limit: int = 1 << 16) -> list[str]:
    """The last `count` lines of a text file, reading at most `limit` bytes from its end."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb", opener=regular) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - limit))
        return file.read().decode("utf-8", "replace").splitlines()[-count:]
    return []
