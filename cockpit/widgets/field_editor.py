"""The one line in which a value is typed, laid over the place where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import on
from textual.binding import Binding
from textual.geometry import Region
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input
from textual.widgets.input import Selection


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
        self._choices: Sequence[str] = ()

    def open(self, text: str, place: Region, *, replaces: bool = False, choices: Sequence[str] = ()) -> None:
        """Begin with `text` at `place`, which counts from the parent's corner.

        What is typed replaces it where it `replaces`. Of `choices` the first is taken that begins with what was typed,
        else the first that has it in it, and the one meant is shown while typing.
        """
        self.value = text
        self._choices = choices
        self.suggester = SuggestFromList(choices, case_sensitive=False) if choices else None
        self.cursor_position = len(text)
        if replaces:
            self.selection = Selection(0, len(text))
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
            self.post_message(self.Accepted(self._meant(), move))

    def _meant(self) -> str:
        """What was typed; where there are choices, the one that it is the beginning or a part of."""
        typed = self.value.strip().lower()
        if self.value in self._choices or not typed:
            return self.value
        begins = [choice for choice in self._choices if choice.lower().startswith(typed)]
        return next(iter([*begins, *(choice for choice in self._choices if typed in choice.lower())]), self.value)

    def action_leave(self) -> None:
        if self.display:
            self.close()
            self.post_message(self.Left())

    @on(Input.Submitted)
    @on(Input.Changed)
    def _keep(self, event: Message) -> None:
        event.stop()
