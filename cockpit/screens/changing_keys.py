"""Keys that come and go with what can be done: the footer is built again, 50 ms, only when one of them does.

A key that is greyed says why, where that is not obvious.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import events
from textual.actions import parse
from textual.binding import ActiveBinding
from textual.screen import Screen

from cockpit.core.text import plain


class ChangingKeysScreen(Screen[None]):
    """A screen whose keys `check_action` may grey or take away."""

    CHANGING: ClassVar[tuple[str, ...]] = ()
    """The actions behind them, as their bindings have them."""

    def __init__(self) -> None:
        super().__init__()
        self._keys_shown: list[bool | None] = []

    def refresh_keys(self) -> None:
        """Grey and ungrey keys, if any changed."""
        shown = [self.check_action(name, parameters) for _, name, parameters in map(parse, self.CHANGING)]
        if shown != self._keys_shown:
            self._keys_shown = shown
            self.refresh_bindings()

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        """Why a greyed action cannot be done now, where that is not obvious; else empty."""
        return ""

    def on_key(self, event: events.Key) -> None:
        active = self.active_bindings.get(event.key)
        if active is not None and not active.enabled:
            _, name, parameters = parse(active.binding.action)
            if sentence := self.why_not(name, parameters):
                self.notify(plain(sentence), markup=False)
                self.lead(name)

    def lead(self, action: str) -> None:
        """Put the cursor on what keeps a greyed action from being done, where the screen shows that."""

    def key_of(self, binding: str) -> str:
        """The key of a binding as it is now; empty where there is none, or where it can do nothing."""
        one = self._bound().get(binding)
        return self.app.get_key_display(one.binding) if one is not None and one.enabled else ""

    def hints(self, bindings: Iterable[str]) -> list[str]:
        """`d delete`: the keys that a person has for these bindings and what they do, of those that are there."""
        there = [one.binding for one in map(self._bound().get, bindings) if one is not None]
        return [f"{self.app.get_key_display(binding)} {binding.description}" for binding in there]

    def _bound(self) -> dict[str | None, ActiveBinding]:
        """What is bound, by id; of several keys the first."""
        return {one.binding.id: one for one in reversed(self.active_bindings.values())}
