"""A screen above another that gives a result and is closed once."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, ScreenResultType


class Dialog(ModalScreen[ScreenResultType]):
    """Closed once: Textual would take a second enter, already on its way, as one that closes the screen beneath."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        return super().dismiss(result) if self.is_active else AwaitComplete()
