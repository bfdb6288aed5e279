"""Lines with numbers that a person types or nudges in place, under a cursor."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.message import Message

from cockpit.core.steering.number_keys import typed_on
from cockpit.widgets.line_view import LineView


class NumbersTable(LineView):
    """A subclass draws the lines, says which takes a number, and takes it."""

    FOLLOWS = False
    HEADER_LINES = 1

    class Changed(Message):
        """Another line, number or typed text."""

    @dataclass
    class Told(Message):
        """Something for the person to read."""

        sentence: str

    def __init__(self, *, id: str, title: str) -> None:
        super().__init__(id=id, title=title)
        self.typed = ""
        """Digits of a number that has not been taken yet."""
        self.at = 0
        """The line under the cursor."""

    # -- for subclasses --------------------------------------------------------------------------------------------

    @property
    def takes_number(self) -> bool:
        """Whether the line under the cursor does."""
        raise NotImplementedError

    def take(self, text: str) -> str:
        """Put a typed number into the line under the cursor; why not, in a sentence, where it is none for it."""
        raise NotImplementedError

    def redraw(self) -> None:
        raise NotImplementedError

    # -- typing and moving -----------------------------------------------------------------------------------------

    def changed(self) -> None:
        self.redraw()
        self.post_message(self.Changed())

    def tell(self, sentence: str) -> None:
        self.post_message(self.Told(sentence))

    def take_typed(self) -> bool:
        """Take what was typed; False when it cannot be, which is said. Nothing typed is fine."""
        if not self.typed:
            return True
        fault, self.typed = self.take(self.typed), ""
        if fault:
            self.tell(fault)
        self.changed()
        return not fault

    def on_key(self, event: events.Key) -> None:
        if self.takes_number and (typed := typed_on(self.typed, event.character)) is not None:
            self.typed = typed
        elif event.key == "backspace" and self.typed:
            self.typed = self.typed[:-1]
        else:
            return
        event.stop()
        self.changed()

    def action_move(self, by: int) -> None:
        if self.count and self.take_typed():
            self.at = min(max(self.at + by, 0), self.count - 1)
            self.bring_into_view(self.at)
            self.changed()

    def on_click(self, event: events.Click) -> None:
        if (index := self.index_under(event)) is not None:
            self.action_move(index - self.at)
