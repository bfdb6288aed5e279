"""The line in which a person types a threshold."""

from __future__ import annotations

from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from cockpit.core.text import plain


class ThresholdLine(Horizontal):
    BINDINGS = [Binding("escape", "close", "cancel", id="thresholds.cancel", tooltip="Keep the threshold")]

    @dataclass
    class Typed(Message):
        """A number, or what should be one; None where the person thought better of it."""

        text: str | None

    def compose(self) -> ComposeResult:
        yield Static("", markup=False)
        yield Input(compact=True, select_on_focus=False)

    def open(self, name: str, text: str) -> None:
        self.add_class("-there")
        self.query_one(Static).update(f"{plain(name)} = ")
        typed = self.query_one(Input)
        typed.value = text
        typed.focus()
        typed.cursor_position = len(text)

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self._close(event.value.strip() or None)

    def action_close(self) -> None:
        self._close(None)

    def _close(self, text: str | None) -> None:
        self.remove_class("-there")
        self.post_message(self.Typed(text))
