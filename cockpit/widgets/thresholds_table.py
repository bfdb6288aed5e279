"""The heads of a review with their thresholds: one line each, a cursor, and what every threshold reaches."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.message import Message

from cockpit.core.format import count, number
from cockpit.core.text import fit_left, fit_right, plain
from cockpit.core.thresholds.curves import ALARMS
from cockpit.core.thresholds.review import NOTHING, Row
from cockpit.widgets.line_view import LineView
from engines.thresholds.adapter import Titles

CURSOR, LOCKED, CHANGED, FLAGGED = ">", "L", "*", "!"
"""Signs before the name, seen also where there is no colour."""
SENT, SAVED = "Sent", "saved"
COLUMNS = (
    ("Thr", 6), (SAVED, 6), ("F1", 6), (SENT, 6), ("Prec", 6), ("Rec", 6), (ALARMS, 8), ("n+", 8),
)  # fmt: skip
"""F1 of what is sent is left out where a yes is what is sent, SAVED where all are too wide: the cursor shows it too."""
EXTRAS = (("best, 95 % CI", 14), ("nearly best", 13), ("gain", 7))
"""As many as there is space for, the first ones first."""
NAME, FLAG_LEAST = 22, 12
SIGNS = 4
MISSING = "—"


@dataclass(frozen=True)
class Line:
    """One head; `row` is None until what it reaches is known."""

    name: str
    new: float
    saved: float
    row: Row | None
    interval: str
    nearly_best: str


class ThresholdsTable(LineView):
    COMPONENT_CLASSES = {
        "thresholds--header", "thresholds--text", "thresholds--quiet", "thresholds--sign", "thresholds--flag",
        "thresholds--cursor",
    }  # fmt: skip
    FOLLOWS = False
    HEADER_LINES = 1
    BINDINGS = [
        Binding("up", "move(-1)", "Up", show=False, id="thresholds.up", tooltip="The line above"),
        Binding("down", "move(1)", "Down", show=False, id="thresholds.down", tooltip="The line below"),
        Binding(
            "left", "screen.tune(-1)", "move", key_display="←→", id="thresholds.less", tooltip="Lower by a fine step"
        ),
        Binding("right", "screen.tune(1)", "move", show=False, id="thresholds.more", tooltip="Raise by a fine step"),
        Binding(
            "left_square_bracket,shift+left", "screen.jump(-1)", "lower", show=False, id="thresholds.lower",
            tooltip="Lower by a 20th of the range",
        ),
        Binding(
            "right_square_bracket,shift+right", "screen.jump(1)", "raise", show=False, id="thresholds.raise",
            tooltip="Raise by a 20th of the range",
        ),
        Binding("pageup", "move(-8)", "Page up", show=False),
        Binding("pagedown", "move(8)", "Page down", show=False),
        Binding("home", "move(-1000000)", "First", show=False),
        Binding("end", "move(1000000)", "Last", show=False),
    ]  # fmt: skip

    @dataclass
    class Selected(Message):
        """The cursor is on another head."""

        name: str

    def __init__(self) -> None:
        super().__init__(id="heads", title="Heads")
        self._titles = Titles()
        self._sends = False
        self._lines: Mapping[str, Line] = {}
        self._names: Sequence[str] = ()
        self._locked: Collection[str] = ()
        self._at = 0
        self._drawn: dict[int, Text] = {}

    @property
    def selected(self) -> str:
        """The head under the cursor; empty while there is none."""
        return self._names[self._at] if self._names else ""

    def copyable(self) -> str:
        """The threshold under the cursor."""
        return str(self._lines[self.selected].new) if self._names else ""

    def show(self, lines: Sequence[Line], locked: Collection[str], titles: Titles, *, sends: bool) -> None:
        """Take them all, and what they are called; only those that differ are drawn again.

        `sends`: what is sent is not just what is on.
        """
        self._sends = sends
        if titles != self._titles:
            self._titles = titles
            self.entitle(titles.heads.capitalize())
        self._names, self._lines, self._locked = [line.name for line in lines], {it.name: it for it in lines}, locked
        self._at = min(self._at, max(0, len(lines) - 1))
        self.resize_to(len(lines), self.size.width)
        self._draw()

    def show_one(self, line: Line) -> None:
        """Take one that has changed."""
        self._lines = {**self._lines, line.name: line}
        index = self._names.index(line.name)
        if (text := self._compose_line(index)) != self._drawn.get(index):
            self._drawn[index] = text
            self.refresh_index(index)

    def on_resize(self) -> None:
        self._drawn.clear()
        self.resize_to(len(self._names), self.size.width)
        self._draw()
        self.bring_into_view(self._at)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._drawn.clear()  # composed in the colours of before

    def _draw(self) -> None:
        before, self._drawn = self._drawn, {index: self._compose_line(index) for index in range(len(self._names))}
        for index, text in self._drawn.items():
            if before.get(index) != text:
                self.refresh_index(index)

    # -- moving ----------------------------------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        self._go_to(self._at + by)

    def _go_to(self, index: int) -> None:
        if not self._names:
            return
        before, self._at = self._at, min(max(index, 0), len(self._names) - 1)
        for changed in {before, self._at}:
            self._drawn[changed] = self._compose_line(changed)
            self.refresh_index(changed)
        self.bring_into_view(self._at)
        self.post_message(self.Selected(self.selected))

    def on_click(self, event: events.Click) -> None:
        if (index := self.index_under(event)) is not None:
            self._go_to(index)

    # -- drawing ---------------------------------------------------------------------------------------------------

    @property
    def _columns(self) -> list[tuple[str, int]]:
        columns = [column for column in COLUMNS if self._sends or column[0] != SENT]
        if SIGNS + NAME + sum(width for _, width in columns) > self.size.width:
            return [column for column in columns if column[0] != SAVED]
        return columns

    def _extras(self) -> tuple[list[int], int]:
        """The widths of the extras that fit right of what is always there, and what is left for the flag."""
        left, widths = self.size.width - SIGNS - NAME - sum(width for _, width in self._columns), []
        for _, width in EXTRAS:
            if left < width:
                break
            widths.append(width)
            left -= width
        return widths, left

    def header(self) -> Text:
        head, alarms = self._titles.head.capitalize(), self._titles.alarms
        columns = ((alarms if title is ALARMS else title, width) for title, width in self._columns)
        line = " " * SIGNS + fit_left(head, NAME) + "".join(fit_right(title, width) for title, width in columns)
        line += "".join(fit_right(title, width) for (title, _), width in zip(EXTRAS, self._extras()[0], strict=False))
        return self.styled(line, "thresholds--header")

    def line(self, index: int) -> Text:
        return self._drawn.get(index) or self._compose_line(index)

    def _compose_line(self, index: int) -> Text:
        line = self._lines[self._names[index]]
        flag = line.row.flag if line.row else ""
        here, quiet = index == self._at, self._style("quiet")
        text = Text(no_wrap=True).append(CURSOR if here else " ", self._style("sign"))
        text.append(LOCKED if line.name in self._locked else " ", self._style("sign"))
        text.append(CHANGED if line.new != line.saved else " ", self._style("sign"))
        text.append(FLAGGED if flag else " ", self._style("flag"))
        text.append(fit_left(plain(line.name), NAME), self._style("text"))
        cells = _cells(line)
        for title, width in self._columns:
            text.append(fit_right(cells[title][0], width), self._style(cells[title][1]))
        widths, left = self._extras()
        extras = (line.interval, line.nearly_best, number(line.row.gain) if line.row else "…")
        text.append("".join(fit_right(cell, width) for cell, width in zip(extras, widths, strict=False)), quiet)
        if left >= FLAG_LEAST:
            text.append("  " + fit_left(flag, left - 2), self._style("flag"))
        if here:
            text.append(" " * max(0, self.size.width - text.cell_len))
            text.stylize(self._style("cursor"))
        return text

    def _style(self, name: str) -> Style:
        return self.component_style(f"thresholds--{name}")


def _cells(line: Line) -> dict[str, tuple[str, str]]:
    """Text and tone by column."""
    fixed = {"Thr": (number(line.new), "text"), SAVED: (number(line.saved), "quiet")}
    if line.row is None:
        return dict.fromkeys((title for title, _ in COLUMNS), ("…", "quiet")) | fixed
    after, sent = line.row.after or NOTHING, line.row.sent or NOTHING
    rates = {"F1": after.f1, SENT: sent.f1, "Prec": after.precision, "Rec": after.recall, ALARMS: after.alarm_rate}
    cells = {title: (number(rate), "text") for title, rate in rates.items()}
    return {**fixed, **cells, "n+": (count(line.row.positives), "quiet")}
