"""What a user wants to see of a list: words that must all occur, or a regular expression between slashes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
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
    _matches: Callable[[str, Collection[str]], object] = lambda searched, marks: True

    @classmethod
    def parse(cls, text: str) -> TextFilter:
        """`amber cuda`: both words, in any case and order. `/amber|birch/`: a regular expression, in any case.

        Among runs a word that begins with `tag:` or `kind:` is a whole mark: `tag:good` does not find `tag:goodbye`.
        """
        text = text.strip()
        if not text.startswith("/"):
            words = text.casefold().split()
            return cls(text, "", lambda searched, marks: all(_occurs(word, searched, marks) for word in words))
        try:
            pattern = re.compile(text[1:].removesuffix("/"), re.IGNORECASE | re.MULTILINE)
            return cls(text, "", lambda searched, marks: pattern.search(searched))
        except re.error as error:
            return cls(text, f"Not a regular expression, {error.msg}")
        except (OverflowError, RecursionError):
            return cls(text, "Not a regular expression, it is too large")

    @property
    def active(self) -> bool:
        """Whether it may leave something out."""
        return bool(self.text) and not self.problem

    def lets_through(self, text: str, marks: Collection[str] = ()) -> bool:
        """Whether `text`, of whatever is listed, is to be shown; of a run `marks` say its kind and tags."""
        return not self.active or bool(self._matches(text, marks))


def _occurs(word: str, searched: str, marks: Collection[str]) -> bool:
    if marks and word.startswith((TAG, KIND)):
        return any(word == mark.casefold() for mark in marks)
    return word in searched.casefold()
