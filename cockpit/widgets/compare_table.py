"""A table of a comparison: names at the left stay in view, each run has its sign, values that stand out are bright."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from rich.cells import cell_len
from rich.text import Text

from cockpit.core.compare.tables import Table
from cockpit.core.plot.frame import STYLE
from cockpit.core.plot.groups import RUN_ROLES
from cockpit.core.text import fit_left
from cockpit.core.text_table import BETWEEN, markdown
from cockpit.widgets.ascii_filter import glyphs_of
from cockpit.widgets.lines_or_sentence import LinesOrSentence
from cockpit.widgets.plot_styles import plot_styles

WIDEST = 32
AROUND = 5
"""Cells of border, padding and scrollbar."""


class CompareTable(LinesOrSentence):
    COMPONENT_CLASSES = {"compare--name", "compare--value", "compare--strong"}
    DEFAULT_CSS = """
    CompareTable {
        height: 1fr;
        .compare--name { color: $name; }
        .compare--value { color: $quiet; }
        .compare--strong { color: $accent; text-style: bold; }
    }
    """
    FOLLOWS = False
    HEADER_LINES = 1
    COLUMN = "run"

    def __init__(self, *, id: str, title: str) -> None:
        super().__init__(id=id, title=title)
        self._table = Table((), (), "")
        self._places: list[int] = []
        self._widths: list[int] = []
        self._asides: list[int] = []
        """Widths of what stands beside the cells' words."""

    def show(self, table: Table, places: Sequence[int]) -> None:
        """Take a table, and the place in the charts of each line that it has a column of; the same costs nothing."""
        if table == self._table and places == self._places:
            return
        self._places = list(places)
        columns = list(zip(*table.rows, strict=True)) or [()] * len(table.header)
        self._widths = _grown(self._widths, [[cell.text for cell in column] for column in columns])
        self._asides = _grown(self._asides, [[cell.aside for cell in column] for column in columns])
        self._table = table
        self._lay_out()
        self.say(table.note.replace("[", r"\["))

    @property
    def needs_width(self) -> int:
        """Cells the widget needs to show every run, without what stands beside the words."""
        return sum(self._widths) + len(BETWEEN) * len(self._widths) + AROUND

    def _lay_out(self) -> None:
        if not self._widths:
            return
        self.ends = self._ends(self._shown_asides)
        self.fixed = self.ends[0] + len(BETWEEN)
        self.fill(len(self._table.rows), self.ends[-1], self._table.instead)

    def notify_style_update(self) -> None:
        """In ASCII the lines have other signs."""
        super().notify_style_update()
        self.call_after_refresh(self.refresh)

    def on_resize(self) -> None:
        self._lay_out()

    @property
    def _shown_asides(self) -> list[int]:
        """Where there is no room for all runs, what stands beside their words is left out."""
        room = self._ends(self._asides)[-1] <= self.scrollable_content_region.width
        return self._asides if room else [0] * len(self._asides)

    def _ends(self, asides: Sequence[int]) -> list[int]:
        widths = map(sum, zip(self._widths, asides, strict=True))
        return list(accumulate(widths, lambda end, width: end + len(BETWEEN) + width))

    def header(self) -> Text:
        """The runs' signs, as in their list and in the charts."""
        if self.sentence or not self._widths:
            return Text()
        header, styles = Text(" " * self._widths[0], no_wrap=True), plot_styles(self.app.theme_variables)
        widths = [width + aside for width, aside in zip(self._widths, self._shown_asides, strict=True)][1:]
        for place, width in zip(self._places, widths, strict=False):
            sign, style = glyphs_of(self.app).runs[place], styles[STYLE[RUN_ROLES[place]]]
            header.append(BETWEEN).append(fit_left(sign, width), style)
        return header

    def copyable(self) -> str:
        """The whole table as Markdown."""
        rows = [[cell.text for cell in row] for row in self._table.rows]
        return " ".join(self.sentence) or "\n".join(markdown(self._table.header, rows))

    def line(self, index: int) -> Text:
        if self.sentence:
            return super().line(index)
        name, *values = self._table.rows[index]
        line = self.styled(fit_left(name.text, self._widths[0]), "compare--name")
        for cell, width, aside in zip(values, self._widths[1:], self._shown_asides[1:], strict=True):
            words = fit_left(cell.text, width) + fit_left(cell.aside, aside)
            line.append(BETWEEN).append_text(self.styled(words, "compare--strong" if cell.strong else "compare--value"))
        return line


def _grown(before: Sequence[int], columns: Sequence[Sequence[str]]) -> list[int]:
    """The widths of columns, none narrower than before: nothing jumps while values change."""
    widths = [min(max(map(cell_len, texts), default=0), WIDEST) for texts in columns]
    return [max(pair) for pair in zip(widths, before, strict=True)] if len(before) == len(widths) else widths
