"""What a user wants to see of a list: words that must all occur, or a regular expression between slashes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

TAG = "tag:"
"""Begins a word that a run's tag must be."""
KIND = "kind:"
"""Begins a word that says what a run is: `kind:training`, `kind:task`."""


@dataclass(frozen=True)
class TextFilter:
    """`problem` says in a clause why a filter cannot be used; it then lets everything through."""

    text: str = ""
    problem: str = ""
    _matches: Callable[[str], object] = lambda words: True

    @classmethod
    def parse(cls, text: str) -> TextFilter:
        """`amber cuda`: both words, in any case and order. `/amber|birch/`: a regular expression, in any case.

        A word that begins with `tag:` or `kind:` is a whole line of what is searched: `tag:good` is not `tag:goodbye`.
        No other word is found in a line of `kind:`.
        """
        text = text.strip()
        if not text.startswith("/"):
            words = text.casefold().split()
            return cls(text, "", lambda searched: all(_occurs(word, searched.casefold()) for word in words))
        try:
            return cls(text, "", re.compile(text[1:].removesuffix("/"), re.IGNORECASE | re.MULTILINE).search)
        except re.error as error:
            return cls(text, f"Not a regular expression, {error.msg}")
        except (OverflowError, RecursionError):
            return cls(text, "Not a regular expression, it is too large")

    @property
    def active(self) -> bool:
        """Whether it may leave something out."""
        return bool(self.text) and not self.problem

    def lets_through(self, text: str) -> bool:
        """Whether `text`, of whatever is listed, is to be shown."""
        return not self.active or bool(self._matches(text))


def _occurs(word: str, searched: str) -> bool:
    lines = searched.splitlines()
    if word.startswith((TAG, KIND)):
        return word in lines
    return any(word in line for line in lines if not line.startswith(KIND))
