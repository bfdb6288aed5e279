"""Which runs a person wants to see: words that must all occur, or a regular expression between slashes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cockpit.core.runs.summary import RunSummary
from cockpit.core.text import plain


@dataclass(frozen=True)
class RunFilter:
    """`problem` says why a filter cannot be used; it then lets every run through."""

    text: str = ""
    problem: str = ""
    _matches: Callable[[str], object] = lambda words: True

    @classmethod
    def parse(cls, text: str) -> RunFilter:
        """`amber cuda`: both words, in any case and order. `/amber|birch/`: a regular expression, in any case."""
        text = text.strip()
        if not text.startswith("/"):
            words = text.casefold().split()
            return cls(text, "", lambda searched: all(word in searched.casefold() for word in words))
        try:
            return cls(text, "", re.compile(text[1:].removesuffix("/"), re.IGNORECASE | re.MULTILINE).search)
        except re.error as error:
            return cls(text, f"Not a regular expression, {error.msg}; all runs are shown.")
        except (OverflowError, RecursionError):
            return cls(text, "Not a regular expression, it is too large; all runs are shown.")

    @property
    def active(self) -> bool:
        """Whether it may leave a run out."""
        return bool(self.text) and not self.problem

    def matching(self, rows: Iterable[RunSummary]) -> list[RunSummary]:
        """The runs it lets through, in their order."""
        return [row for row in rows if self.lets_through(_searched(row))] if self.active else list(rows)

    def lets_through(self, text: str) -> bool:
        """Whether `text`, of whatever is listed, is to be shown."""
        return not self.active or bool(self._matches(text))


def _searched(row: RunSummary) -> str:
    """Everything of a run that a person might look for, each on a line of its own."""
    parts = (row.id, row.project, row.label, row.notes, row.title, row.detail, row.state, row.device)
    return "\n".join(plain(part) for part in parts)
