"""The tail of a log as a terminal would show it: bounded, harmless, progress bars collapsed to their last update."""

from __future__ import annotations

import codecs
import os
import re
from collections import deque
from pathlib import Path

from cockpit.core.text import ESCAPE, plain
from engines.basics.reading import regular

FIRST_READ = 256 * 1024
"""Bytes from the end that are read of a log opened late, or that grew by more than this between two calls."""
MOST_LINES = 2000
LONGEST_LINE = 2000
_MOVES = re.compile(r"(\r\n|\n|\r|\x1b\[\d*[AF])")
_UNFINISHED = re.compile(r"(\r|\x1b(\[[0-?]*)?[ -/]*)\Z")


class TerminalText:
    """Turns a stream of text into lines. Knows newline, carriage return and cursor-up; other control is dropped."""

    def __init__(self, most: int | None = MOST_LINES) -> None:
        self.lines: deque[str] = deque(maxlen=most)
        self.dropped = 0
        """Lines that fell off the start."""
        self._up = 0
        self._fresh = True
        self._rest = ""

    def shown(self) -> tuple[str, ...]:
        """The lines, without the empty one that a final newline begins."""
        lines = tuple(self.lines)
        return lines[:-1] if lines and not lines[-1] else lines

    def feed(self, text: str) -> None:
        text = self._rest + text
        unfinished = _UNFINISHED.search(text)
        self._rest = unfinished.group() if unfinished else ""
        for part in _MOVES.split(text[: len(text) - len(self._rest)]):
            if part in ("\n", "\r\n"):
                self._newline()
            elif part == "\r":
                self._fresh = True
            elif part.endswith(("A", "F")) and ESCAPE.fullmatch(part):
                rows = int(part[2:-1] or 1)
                self._up = min(self._up + rows, max(len(self.lines) - 1, 0))
                self._fresh = True
            elif part:
                self._write(part)

    def _newline(self) -> None:
        if not self.lines:
            self._append("")
        if self._up:
            self._up -= 1
        else:
            self._append("")
        self._fresh = True

    def _write(self, part: str) -> None:
        text = plain(part)
        if not self.lines:
            self._append("")
        place = len(self.lines) - 1 - self._up
        if self._fresh and not text:
            return  # only control: the old content stays until something replaces it
        joined = text if self._fresh else self.lines[place] + text
        self.lines[place] = joined[:LONGEST_LINE]
        self._fresh = False

    def _append(self, line: str) -> None:
        if len(self.lines) == self.lines.maxlen:
            self.dropped += 1
        self.lines.append(line)


class LogTail:
    """Follows a log file; a burst larger than the first read is skipped to its end, never kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start()

    def _start(self) -> None:
        self._offset = 0
        self._inode: int | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.text = TerminalText()
        self.skipped = 0
        """Bytes left out."""

    def poll(self) -> bool:
        """Read what is new and say whether anything changed. Raises OSError, but not for a missing file."""
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return False
        if self._inode not in (None, status.st_ino) or status.st_size < self._offset:
            self._start()
        self._inode = status.st_ino
        if status.st_size == self._offset:
            return False
        self._read(status.st_size)
        return True

    def _read(self, size: int) -> None:
        skip = size - self._offset - FIRST_READ
        with open(self._path, "rb", opener=regular) as file:
            if skip > 0:
                self._offset += skip
                self.skipped += skip
                self._decoder.reset()
            file.seek(self._offset)
            data = file.read(size - self._offset)
        self._offset += len(data)
        if skip > 0:
            data = data[data.find(b"\n") + 1 :]  # from a whole line on
            if self.text.lines:
                self.text.feed("\n")
        self.text.feed(self._decoder.decode(data))
