"""The one line in which a value is typed, laid over the place where it stands."""

from __future__ import annotations

from dataclasses import dataclass

from textual import on
from textual.binding import Binding
from textual.geometry import Region
from textual.message import Message
from textual.widgets import Input


class FieldEditor(Input):
    DEFAULT_CSS = """
    FieldEditor {
        display: none;
        position: absolute;
        layer: editor;
        background: $panel;
        color: $foreground;
    }
    """
    BINDINGS = [
        Binding("up", "accept(-1)", "Previous field", show=False),
        Binding("down,tab", "accept(1)", "Next field", show=False),
        Binding("escape", "leave", "cancel", id="field.leave", tooltip="Keep the old value"),
        Binding("enter", "accept(0)", "accept", id="field.take", tooltip="Accept what was typed"),
    ]

    @dataclass
    class Accepted(Message):
        """This was typed; go on so many fields further."""

        text: str
        move: int

    @dataclass
    class Left(Message):
        """The field stays as it was."""

    def __init__(self) -> None:
        super().__init__(id="editor", compact=True, select_on_focus=False)

    def open(self, text: str, place: Region) -> None:
        """Begin with `text` at `place`, which counts from the parent's corner."""
        self.value = text
        self.cursor_position = len(text)
        self.display = True
        self.move_to(place)
        self.focus()

    def move_to(self, place: Region) -> None:
        self.styles.offset = (place.x, place.y)
        self.styles.width = place.width

    def close(self) -> None:
        self.display = False

    def action_accept(self, move: int) -> None:
        if self.display:  # keys that came faster than the focus moved on mean no field that was edited
            self.close()
            self.post_message(self.Accepted(self.value, move))

    def action_leave(self) -> None:
        if self.display:
            self.close()
            self.post_message(self.Left())

    @on(Input.Submitted)
    @on(Input.Changed)
    def _keep(self, event: Message) -> None:
        event.stop()
