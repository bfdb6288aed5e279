"""A log of any size, read by line number: an index of where its blocks begin, and of the rest only what is asked for.

Lines are those that a terminal would show, as `TerminalText` makes them, with one difference: cursor-up reaches back to
the beginning of its block of a quarter of a megabyte, not further. A gigabyte has 4,000 blocks of 30 bytes each here.
"""

from __future__ import annotations

import bisect
import os
import re
from dataclasses import dataclass
from pathlib import Path

from cockpit.core.log.logtail import LONGEST_LINE, TerminalText
from cockpit.core.text import plain
from engines.basics.reading import regular

BLOCK = 256 * 1024
"""Bytes of a block, but for a single line that is longer."""
AT_ONCE = 64
"""Blocks that `extend` reads in one call, so that its thread can turn to something else."""
_CURSOR_UP = re.compile(rb"\x1b\[\d*[AF]")


@dataclass(frozen=True)
class Block:
    """Whole lines of the file; `first` is the number of lines before them."""

    start: int
    end: int
    first: int
    count: int


class LogFile:
    """Follows a log by its index. Reads a disk: for one thread of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start()

    def _start(self) -> None:
        self._inode: int | None = None
        self._size = 0
        self._open_end = False
        """Whether the last block may still grow: it is not full, or its last line has not ended."""
        self.blocks: list[Block] = []

    @property
    def count(self) -> int:
        """Lines found so far."""
        return self.blocks[-1].first + self.blocks[-1].count if self.blocks else 0

    @property
    def read(self) -> float:
        """How much of the file is in the index, 0 to 1."""
        return self._end / self._size if self._size else 1.0

    @property
    def _end(self) -> int:
        return self.blocks[-1].end if self.blocks else 0

    def extend(self) -> bool:
        """Read on, up to `AT_ONCE` blocks; whether anything changed. Raises OSError; a missing file is empty."""
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            changed = bool(self.blocks)
            self._start()
            return changed
        if self._inode not in (None, status.st_ino) or status.st_size < self._end:
            self._start()
        self._inode, self._size = status.st_ino, status.st_size
        if self._end >= self._size:
            return False
        with open(self._path, "rb", opener=regular) as file:
            for _ in range(AT_ONCE):
                if self._end >= self._size or not self._add_block(file.fileno()):
                    break
        return True

    def _add_block(self, file: int) -> bool:
        """The next block; one that could still grow is made again with what came after it. False: nothing is there."""
        start, end = self._end, self._end
        if self._open_end:
            start = self.blocks.pop().start
        data = os.pread(file, BLOCK, start)
        if not data:
            return False
        stop = len(data)
        if start + stop < self._size:  # not the last: it ends with a line
            stop = data.rfind(b"\n") + 1 or self._end_of_line(file, max(end, start + stop)) - start
        whole = stop <= len(data)
        ended = (data[stop - 1 : stop] if whole else os.pread(file, 1, start + stop - 1)) == b"\n"
        self._open_end = start + stop >= self._size and (stop < BLOCK or not ended)
        self.blocks.append(Block(start, start + stop, self.count, count_lines(data[:stop]) if whole else 1))
        return True

    def _end_of_line(self, file: int, offset: int) -> int:
        """Where the line that goes on at `offset` ends, or the file does."""
        while data := os.pread(file, BLOCK, offset):
            if (place := data.find(b"\n")) >= 0:
                return offset + place + 1
            offset += len(data)
        return offset

    def tail(self) -> list[str]:
        """The last lines, for while the index is being made. Raises OSError."""
        start = max(self._size - BLOCK, 0)
        with open(self._path, "rb", opener=regular) as file:
            data = os.pread(file.fileno(), BLOCK, start)
        return shown_lines(data[data.find(b"\n") + 1 :] if start else data)

    def lines(self, first: int, stop: int) -> list[str]:
        """Lines `first` to `stop`, as far as there are any. Raises OSError."""
        found: list[str] = []
        place = max(bisect.bisect_right(self.blocks, first, key=lambda block: block.first) - 1, 0)
        for block in self.blocks[place:]:
            if block.first >= stop:
                break
            shown = self.block_lines(block)
            found += shown[max(first - block.first, 0) : stop - block.first]
        return found

    def block_lines(self, block: Block) -> list[str]:
        """All lines of a block, each at most `LONGEST_LINE` characters."""
        return shown_lines(self.bytes_of(block))[: block.count]

    def bytes_of(self, block: Block) -> bytes:
        """What a block holds; of one long line its end, where that is a progress bar's state, else its beginning."""
        with open(self._path, "rb", opener=regular) as file:
            size = block.end - block.start
            if size <= BLOCK:
                return os.pread(file.fileno(), size, block.start)
            end = os.pread(file.fileno(), BLOCK, block.end - BLOCK)
            place = end.rstrip(b"\r\n").rfind(b"\r")
            return end[place + 1 :] if place >= 0 else os.pread(file.fileno(), 4 * LONGEST_LINE, block.start)


def count_lines(data: bytes) -> int:
    """How many lines `shown_lines` gives, without making them where nothing moves the cursor up."""
    if b"\x1b[" in data and _CURSOR_UP.search(data):
        return len(shown_lines(data))
    rest = data[data.rfind(b"\n") + 1 :]  # a line that has not ended counts once there is something to see
    return data.count(b"\n") + bool(_last_update(rest.decode("utf-8", "replace")))


def shown_lines(data: bytes) -> list[str]:
    """`data` as the lines a terminal would show; the quick way where nothing moves the cursor."""
    text = data.decode("utf-8", "replace")
    if _CURSOR_UP.search(data):
        return _by_terminal(text)
    lines = text.split("\n")
    if not _last_update(lines[-1]):
        lines.pop()
    return [_last_update(line) if "\r" in line else plain(line[: 4 * LONGEST_LINE])[:LONGEST_LINE] for line in lines]


def _last_update(line: str) -> str:
    """What is left of a line that was written over: of a progress bar its last state."""
    parts = (plain(part) for part in reversed(line.split("\r")))
    return next((part for part in parts if part), "")[:LONGEST_LINE]


def _by_terminal(text: str) -> list[str]:
    terminal = TerminalText(most=None)
    terminal.feed(text)
    return list(terminal.shown())
