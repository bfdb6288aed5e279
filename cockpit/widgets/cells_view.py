"""A pane of cells that change often and a few at a time: only lines that changed go to the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip

from cockpit.core.ascii import in_ascii
from cockpit.core.plot.glyphs import ASCII
from cockpit.core.scenes.cells import BLANK, Row
from cockpit.widgets.ascii_filter import glyphs_of
from cockpit.widgets.heading import literal
from cockpit.widgets.kept_styles import KeptStyles

STYLE_BYTES = 42
"""What a terminal is sent for one stretch of one colour besides its characters, in 24-bit colour."""
MOVE_BYTES = 8


class CellsView(KeptStyles):
    """Shows rows of cells that fill it. `draw(width, height)` makes them whenever they are asked for."""

    COMPONENT_CLASSES = {f"cells--{kind}" for kind in (
        "plain", "quiet", "faint", "accent", "first", "second", "good", "bad"
    )}  # fmt: skip

    def __init__(self, *, id: str, classes: str = "pane") -> None:
        super().__init__(id=id, classes=classes)
        self._names = ("", "")
        self._rows: list[Row] = []
        self._draw: Callable[[int, int], Sequence[Row]] = lambda width, height: []

    def entitle(self, title: str, subtitle: str = "") -> None:
        """Words in the frame, never markup; the same again cost nothing."""
        if (title, subtitle) != self._names:
            self._names = title, subtitle
            self.border_title, self.border_subtitle = map(literal, self._names)

    def show(self, draw: Callable[[int, int], Sequence[Row]]) -> int:
        """Take what is to be seen now; gives about how many bytes the terminal is sent for it."""
        self._draw = draw
        before, self._rows = self._rows, self._drawn()
        if len(before) != len(self._rows) or not before or len(before[0]) != len(self._rows[0]):
            self.refresh()
            return sum(_cost(row) for row in self._rows)
        cost = 0
        for y, (old, new) in enumerate(zip(before, self._rows, strict=True)):
            if old != new:
                last = max(x for x in range(len(new)) if old[x] != new[x])
                self.refresh(Region(0, y, last + 1, 1))  # a line is sent from its start in any case
                cost += _cost(new[: last + 1])
        return cost

    def on_resize(self) -> None:
        self._rows = self._drawn()
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self._rows:  # in ASCII they are other characters
            self._rows = self._drawn()

    def _drawn(self) -> list[Row]:
        width, height = self.size
        rows = [list(row) for row in self._draw(width, height)]
        rows += [[BLANK] * width for _ in range(height - len(rows))]
        return [in_ascii(row) for row in rows] if glyphs_of(self.app) is ASCII else rows

    def render_line(self, y: int) -> Strip:
        """A line of the widget's content."""
        row = self._rows[y] if y < len(self._rows) else []
        segments = [Segment(text, self._style(kind)) for text, kind in _stretches(row)]
        return Strip(segments).adjust_cell_length(self.size.width).apply_style(self.rich_style)

    def _style(self, kind: str) -> Style:
        if kind.startswith("rgb:"):
            upper, lower = kind.split(":")[1:]
            return Style(color=upper, bgcolor=lower)
        return self.component_style(f"cells--{kind}")


def _stretches(row: Row) -> list[tuple[str, str]]:
    """Text and kind of each stretch of one colour; a space goes with what stands before it, since it has none."""
    stretches: list[tuple[str, str]] = []
    for character, kind in row:
        if stretches and (kind == stretches[-1][1] or (character == " " and not stretches[-1][1].startswith("rgb:"))):
            stretches[-1] = (stretches[-1][0] + character, stretches[-1][1])
        else:
            stretches.append((character, kind))
    return stretches


def _cost(row: Row) -> int:
    return MOVE_BYTES + sum(STYLE_BYTES + len(text.encode()) for text, _ in _stretches(row))
