"""The fields of a form as lines, section by section, drawn on demand, with a cursor that a person moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.geometry import Region
from textual.message import Message

from cockpit.core.config.fields import Field
from cockpit.core.text import fit_left, plain
from cockpit.widgets.line_view import LineView

NAME_WIDTH = 24
INDENT = 2


@dataclass(frozen=True)
class FieldLine:
    """What one field shows. The signs say by shape what the colours say: ✖ fault, ● changed, ◦ not the default."""

    field: Field
    value: str
    changed: bool = False
    not_default: bool = False
    fault: str = ""
    note: str = ""


class FormView(LineView):
    COMPONENT_CLASSES = {
        "form--section", "form--name", "form--value", "form--note", "form--changed", "form--default", "form--fault",
        "form--cursor",
    }  # fmt: skip
    FOLLOWS = False
    BINDINGS = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "move(-10)", "Page up", show=False),
        Binding("pagedown", "move(10)", "Page down", show=False),
        Binding("home", "move(-1000000)", "First", show=False),
        Binding("end", "move(1000000)", "Last", show=False),
    ]

    @dataclass
    class Moved(Message):
        """The cursor is on another field, or on none."""

        field: Field | None

    @dataclass
    class Chosen(Message):
        """The person wants to change the field under the cursor."""

    @dataclass
    class Scrolled(Message):
        """Lines stand elsewhere now."""

    def __init__(self) -> None:
        super().__init__(id="form", title="Settings")
        self._rows: list[FieldLine | str] = []
        self._faults: Mapping[str, str] = {}
        self._at = 0

    @property
    def field(self) -> Field | None:
        """The field the cursor is on."""
        row = self._rows[self._at] if self._rows else ""
        return None if isinstance(row, str) else row.field

    def show(self, lines: Sequence[FieldLine], section_faults: Mapping[str, str]) -> None:
        """Take the lines in order; the cursor stays on its field, and only lines that changed are drawn again."""
        before, kept, faults = self._rows, self.field, self._faults
        self._rows, self._faults = _with_headings(lines), section_faults
        self.resize_to(len(self._rows), 0)
        places = {row.field.key: at for at, row in enumerate(self._rows) if isinstance(row, FieldLine)}
        first = next(iter(places.values()), 0)
        self._at = places.get(kept.key, first) if kept else first
        for at, row in enumerate(self._rows):
            if at >= len(before) or before[at] != row or (isinstance(row, str) and faults != section_faults):
                self.refresh_index(at)
        if len(before) != len(self._rows):
            self.refresh()
            self.call_after_refresh(self._scroll_to_cursor)  # a filter that came or went has moved its line
        if self.field != kept:
            self._scroll_to_cursor()
            self.post_message(self.Moved(self.field))

    # -- moving ----------------------------------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        """Over headings to the field so many fields away, at most to the first or last."""
        places = [at for at, row in enumerate(self._rows) if isinstance(row, FieldLine)]
        if places:
            now = places.index(self._at)
            self._go_to(places[min(max(now + by, 0), len(places) - 1)])

    def go_to(self, field: Field) -> None:
        """Put the cursor on `field`, if it is shown."""
        for at, row in enumerate(self._rows):
            if isinstance(row, FieldLine) and row.field.key == field.key:
                self._go_to(at)

    def _go_to(self, at: int) -> None:
        before, self._at = self._at, at
        self.refresh_index(before)
        self.refresh_index(at)
        self._scroll_to_cursor()
        self.post_message(self.Moved(self.field))

    def _scroll_to_cursor(self) -> None:
        """Into view, with its heading where that is the line above."""
        first = self._at - 1 if self._at and isinstance(self._rows[self._at - 1], str) else self._at
        self.bring_into_view(first if first < self.scroll_offset.y else self._at)

    def on_click(self, event: events.Click) -> None:
        at = self.index_under(event)
        if at is not None and isinstance(self._rows[at], FieldLine):
            again = at == self._at
            self._go_to(at)
            if again:
                self.post_message(self.Chosen())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Scrolled())

    # -- drawing ---------------------------------------------------------------------------------------------------

    @property
    def value_region(self) -> Region:
        """Where the value under the cursor stands, from the widget's own corner: for the editor over it."""
        row = self._at - self.scroll_offset.y
        left = self.gutter.left + INDENT + NAME_WIDTH
        return Region(left, self.gutter.top + row, max(8, self._room), 1)

    @property
    def _room(self) -> int:
        """Cells right of the names."""
        return max(0, self.scrollable_content_region.width - INDENT - NAME_WIDTH)

    @property
    def _value_width(self) -> int:
        return max(12, self._room * 2 // 5)

    def line(self, index: int) -> Text:
        row = self._rows[index]
        if isinstance(row, str):
            line = self.styled(row, "form--section")
            if fault := self._faults.get(row):
                line.append(f"  ✖ {plain(fault)}", self.get_component_rich_style("form--fault", partial=True))
            return line
        line = self._field_line(row)
        if index == self._at:
            line.append(" " * max(0, self.size.width - line.cell_len))
            line.stylize(self.get_component_rich_style("form--cursor", partial=True))
        return line

    def _field_line(self, row: FieldLine) -> Text:
        sign, style = _sign(row)
        line = self.styled(sign + " ", style)
        line.append_text(self.styled(fit_left(row.field.key[-1], NAME_WIDTH - 1) + " ", "form--name"))
        value = fit_left(plain(row.value), min(self._room, self._value_width))
        line.append_text(self.styled(value, style if row.changed else "form--value"))
        rest = self._room - self._value_width - 1
        if rest > 4:
            note, note_style = (row.fault, "form--fault") if row.fault else (row.note, "form--note")
            line.append_text(self.styled(" " + fit_left(plain(note), rest), note_style))
        return line


def _sign(row: FieldLine) -> tuple[str, str]:
    if row.fault:
        return "✖", "form--fault"
    if row.changed:
        return "●", "form--changed"
    return ("◦", "form--default") if row.not_default else (" ", "form--note")


def _with_headings(lines: Sequence[FieldLine]) -> list[FieldLine | str]:
    rows: list[FieldLine | str] = []
    section = None
    for line in lines:
        own = ".".join(line.field.key[:-1])
        if own != section and own:
            rows.append(own)
        section = own
        rows.append(line)
    return rows
