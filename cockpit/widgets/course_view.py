"""What of a run's learning rate and end can be set or asked for: a line each, with its value now and the new one."""

from __future__ import annotations

from dataclasses import replace

from rich.text import Text
from textual.binding import Binding

from cockpit.core.steering.course import ROWS, SETTINGS, TITLES, Course, Row
from cockpit.widgets.numbers_table import NumbersTable


class CourseView(NumbersTable):
    COMPONENT_CLASSES = {f"course--{name}" for name in ("header", "text", "title", "quiet", "cursor", "changed")}
    BINDINGS = [
        Binding("up", "move(-1)", "up", show=False, id="course.up", tooltip="The line above"),
        Binding("down", "move(1)", "down", show=False, id="course.down", tooltip="The line below"),
        Binding("left", "nudge(-1)", "less", show=False, id="course.less", tooltip="Step down"),
        Binding("right", "nudge(1)", "more", show=False, id="course.more", tooltip="Step up"),
        Binding(
            "shift+left", "nudge(-1, True)", "finer down", show=False, id="course.less-fine", tooltip="Finer step down"
        ),
        Binding(
            "shift+right", "nudge(1, True)", "finer up", show=False, id="course.more-fine", tooltip="Finer step up"
        ),
        Binding("u", "undo", "undo", id="course.undo", tooltip="Back to the current value"),
    ]

    def __init__(self) -> None:
        super().__init__(id="course", title="Learning rate and end")
        self.course = Course(0.0)

    @property
    def row(self) -> Row:
        return ROWS[self.at]

    @property
    def meant(self) -> Course:
        """With what is being typed, as far as that can be taken."""
        meant = replace(self.course, new=dict(self.course.new))
        if self.typed:
            meant.type_in(self.row, self.typed)
        return meant

    def redraw(self) -> None:
        self.resize_to(len(ROWS), 0)
        self.refresh()

    def header(self) -> Text:
        return self.styled(f"  {'':22}{'now':>10}{'new':>12}", "course--header")

    def line(self, index: int) -> Text:
        row, here = ROWS[index], index == self.at
        line = self.styled("› " if here else "  ", "course--title")
        line.append_text(self.styled(f"{TITLES[row]:22}", f"course--{'title' if here else 'text'}"))
        if row not in SETTINGS:
            return line.append_text(self.styled(f"{'press enter' if here else '':>22}", "course--quiet"))
        now, new = self.course.now.get(row), self.course.new.get(row)
        line.append_text(self.styled(f"{'—' if now is None else format(now, 'g'):>10}", "course--quiet"))
        value = f"{self.typed}_" if here and self.typed else "—" if new is None else f"{new:g}"
        text = f"{'‹' if here else '*' if new != now else ' '} {value:>7}{'›' if here else ' '}"
        return line.append("  ").append_text(
            self.styled(text, f"course--{'cursor' if here else 'changed' if new != now else 'text'}")
        )

    @property
    def takes_number(self) -> bool:
        return self.row in SETTINGS

    def take(self, text: str) -> str:
        return self.course.type_in(self.row, text)

    def action_nudge(self, direction: int, fine: bool = False) -> None:
        if self.take_typed():
            self.course.nudge(self.row, direction, fine=fine)
            self.changed()

    def action_undo(self) -> None:
        if not self.typed:
            self.course.new = dict(self.course.now)
        self.typed = ""
        self.changed()
