"""Searching a log of any size: how many lines match, and where the next one is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from cockpit.core.log.logfile import Block, LogFile, shown_lines
from cockpit.core.text import ESCAPE
from cockpit.core.text_filter import TextFilter

AT_ONCE = 16
"""Blocks searched in one call, so that a thread can answer something else between: of an expression some 0.2 s."""


def spans(sought: TextFilter, line: str) -> list[tuple[int, int]]:
    """Where in a matching line the words or the expression stand."""
    if not sought.active:
        return []
    if sought.text.startswith("/"):
        pattern = sought.text[1:].removesuffix("/")
    else:
        pattern = "|".join(map(re.escape, sought.text.split()))
    return [found.span() for found in re.finditer(pattern, line, re.IGNORECASE) if found.end() > found.start()]


@dataclass
class Search:
    """Lines that a filter lets through, counted block by block from the end of the file, a few blocks a call."""

    file: LogFile
    filter: TextFilter
    _counted: dict[tuple[int, int], int] = field(default_factory=dict)
    """Matching lines by the offsets of a block; one that grew is another block."""

    def go(self) -> bool:
        """Count on, up to `AT_ONCE` blocks; False when all that is there is counted. Raises OSError."""
        waiting = (block for block in reversed(self.file.blocks) if _key(block) not in self._counted)
        for place, block in enumerate(waiting):
            if place == AT_ONCE:
                return True
            self._counted[_key(block)] = len(self._matches(block))
        return False

    @property
    def total(self) -> int:
        """Matching lines counted so far."""
        return sum(map(self._of, self.file.blocks))

    @property
    def done(self) -> bool:
        return all(_key(block) in self._counted for block in self.file.blocks)

    def _of(self, block: Block) -> int:
        return self._counted.get(_key(block), 0)

    def place(self, line: int) -> int:
        """How many matching lines come before `line`, as far as they are counted."""
        before = [block for block in self.file.blocks if block.first < line]
        if not before:
            return 0
        inside = sum(match < line for match in self._matches(before[-1])) if self._of(before[-1]) else 0
        return sum(map(self._of, before[:-1])) + inside

    def next(self, line: int, *, forward: bool) -> int | None:
        """The nearest matching line after `line` or before it; once all are counted, else the first from the other end.

        Counting begins at the end of the file, so what was found before `line` is the nearest.
        """
        found = next(self._from(line, forward=forward), None)
        if found is None and self.done:
            found = next(self._from(-1 if forward else self.file.count, forward=forward), None)
        return found

    def _from(self, line: int, *, forward: bool) -> Iterator[int]:
        blocks = self.file.blocks if forward else reversed(self.file.blocks)
        for block in blocks:
            beyond = block.first + block.count - 1 > line if forward else block.first < line
            if beyond and self._of(block):
                matches = self._matches(block)
                for match in matches if forward else reversed(matches):
                    if (match > line) if forward else (match < line):
                        yield match

    def _matches(self, block: Block) -> list[int]:
        """Numbers of the matching lines of a block. A block that nowhere holds what is sought is not taken apart."""
        data = self.file.bytes_of(block)
        if not self.filter.lets_through(_searched(data)):
            return []
        lines = shown_lines(data)[: block.count]
        return [block.first + place for place, line in enumerate(lines) if self.filter.lets_through(line)]


def _key(block: Block) -> tuple[int, int]:
    return block.start, block.end


def _searched(data: bytes) -> str:
    """A block's text, without what a terminal does not show."""
    text = data.decode("utf-8", "replace")
    if "\x1b" in text:
        text = ESCAPE.sub("", text)
    return text.replace("\r", "\n") if "\r" in text else text
