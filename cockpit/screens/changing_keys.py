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

    def key_of(self, binding: str) -> str:
        """The key of a binding as it is now; empty where there is none, or where it can do nothing."""
        active = (one for one in self.active_bindings.values() if one.binding.id == binding and one.enabled)
        return next((self.app.get_key_display(one.binding) for one in active), "")
