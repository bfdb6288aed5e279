"""A style sheet that parses every source once: most of a start, and of opening a screen, was parsing the same again."""

from __future__ import annotations

from typing import Any

from textual.cache import LRUCache
from textual.css.stylesheet import Stylesheet

MOST_SOURCES = 1024


class KeepingStylesheet(Stylesheet):
    """Gives the rules that Textual's own gives, and keeps what it parsed until a variable changes.

    Textual's reparses all sources whenever a screen brings one, or a theme is set that is already in force, and its
    cache holds fewer sources than a start has.
    """

    def __init__(self, variables: dict[str, str]) -> None:
        super().__init__(variables=variables)
        self._parse_cache: LRUCache[tuple[Any, ...], Any] = LRUCache(MOST_SOURCES)

    def knows(self, variables: dict[str, str]) -> bool:
        """Whether these are the variables in force."""
        return variables == self._variables

    def set_variables(self, variables: dict[str, str]) -> None:
        if not self.knows(variables):
            super().set_variables(variables)

    def reparse(self) -> None:
        """As `parse`, which leaves the rules in force as they are if it raises."""
        self.parse()
