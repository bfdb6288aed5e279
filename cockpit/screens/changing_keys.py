"""Keys that come and go with what can be done: the footer is built anew, 50 ms, only when one of them does."""

from __future__ import annotations

from typing import ClassVar

from textual.screen import Screen


class ChangingKeysScreen(Screen[None]):
    """A screen whose keys `check_action` may grey or take away."""

    CHANGING: ClassVar[tuple[str, ...]] = ()
    """The actions behind them."""

    def __init__(self) -> None:
        super().__init__()
        self._keys_shown: list[bool | None] = []

    def refresh_keys(self) -> None:
        """Grey and ungrey keys, if any changed."""
        shown = [self.check_action(action, ()) for action in self.CHANGING]
        if shown != self._keys_shown:
            self._keys_shown = shown
            self.refresh_bindings()
