"""The table of a comparison: a line per run or group, with a cursor, and the signs of those that are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.binding import Binding
from textual.message import Message

from cockpit.core.compare.lines import Key, Line
from cockpit.core.compare.table import LineTable, Title, plain_rows
from cockpit.core.compare.tables import Cell
from cockpit.core.plot.frame import STYLE
from cockpit.core.plot.groups import RUN_ROLES
from cockpit.core.text import fit_apart, fit_left, fit_right
from cockpit.core.text_table import BETWEEN, markdown
from cockpit.widgets.ascii_filter import glyphs_of
from cockpit.widgets.line_view import LineView
from cockpit.widgets.plot_styles import plot_styles

CURSOR = ">"
SIGN_WIDTH = 3
"""Cells before the name: the cursor, the sign of a line that is drawn, a gap."""
LEAST_NAME, MOST_NAME = 14, 44
WIDEST = 30
APART = 200
"""Names that are told apart where they are cut; of more the ends are cut."""


class CompareLines(LineView):
    COMPONENT_CLASSES = {
        "lines--header", "lines--name", "lines--value", "lines--strong", "lines--quiet", "lines--good", "lines--bad",
        "lines--cursor", "lines--sign",
    }  # fmt: skip
    DEFAULT_CSS = """
    CompareLines {
        height: 1fr;
        .lines--header { color: $quiet; }
        .lines--name { color: $foreground; }
        .lines--value { color: $foreground; }
        .lines--quiet { color: $quiet; }
        .lines--strong { color: $accent; text-style: bold; }
        .lines--good { color: $good; }
        .lines--bad { color: $bad; }
        .lines--sign { color: $accent; text-style: bold; }
        .lines--cursor { background: $line; }
    }
    """
    FOLLOWS = False
    HEADER_LINES = 1
    BINDINGS = [
        Binding("enter", "open", "open", id="compare.open", tooltip="Open the run; of a group show or hide its runs"),
        Binding("space", "draw", "draw", id="compare.draw", tooltip="Draw the line in the charts, or take it off"),
        Binding("o", "order", "order", id="compare.order", tooltip="Order by a column; again: the other way round"),
        Binding("v", "columns", "cols", id="compare.columns", tooltip="Choose the values that are shown"),
        Binding("z", "fold", "seeds", id="compare.fold", tooltip="One line for all seeds, or a line per run"),
        Binding("b", "pin", "baseline", id="compare.baseline", tooltip="Show differences to this run, or no more"),
        Binding("e", "describe", "label", show=False, id="compare.label", tooltip="Give the run a label, notes, tags"),
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "move(-1000000)", "First", show=False),
        Binding("end", "move(1000000)", "Last", show=False),
    ]

    @dataclass
    class Asked(Message):
        """The user wants something of the line under the cursor: open, draw, pin, describe."""

        what: str
        line: Line

    @dataclass
    class OrderAsked(Message):
        """The user wants the lines ordered by this source; empty: a list to choose it from."""

        source: str

    class ColumnsAsked(Message):
        """The user wants to choose columns."""

    class FoldAsked(Message):
        """The user wants seeds on one line, or apart."""

    def __init__(self) -> None:
        super().__init__(id="lines", title="Runs")
        self.table = LineTable()
        self._key: Key | None = None
        self._signs: Mapping[Key, int] = {}
        self._widths: list[tuple[int, int]] = []
        """Of each column the cells of its words, and of what stands beside them."""
        self._names: list[str] = []
        self._fitted: tuple[object, ...] = ()

    # -- what is shown ---------------------------------------------------------------------------------------------

    def show(self, table: LineTable, signs: Mapping[Key, int]) -> None:
        """Take a table, and the places in the charts of the lines that are drawn; the same again costs nothing."""
        if table is self.table and signs == self._signs:
            return
        at = self.index
        self.table, self._signs = table, dict(signs)
        if self.cursor is None:  # its line is gone: stay where it was
            self._key = table.lines[min(at, len(table.lines) - 1)].key if table.lines else None
        self._lay_out()
        self.refresh()

    @property
    def cursor(self) -> Line | None:
        """The line under the cursor."""
        return next((line for line in self.table.lines if line.key == self._key), None)

    @property
    def index(self) -> int:
        return next((place for place, line in enumerate(self.table.lines) if line.key == self._key), 0)

    def copyable(self) -> str:
        """The whole table as Markdown."""
        return "\n".join(markdown(*plain_rows(self.table)))

    def _lay_out(self) -> None:
        asked = (self.table, self.room)
        if not self.table.titles or asked == self._fitted:
            return
        self._fitted = asked
        columns = list(zip(*self.table.cells, strict=True)) or [()] * len(self.table.titles)
        self._widths = [_widths(title, column) for title, column in zip(self.table.titles, columns, strict=True)]
        self._fit_names([cell.text for cell in columns[0]])
        ends = accumulate((sum(width) for width in self._widths), lambda end, width: end + len(BETWEEN) + width)
        self.ends = [SIGN_WIDTH + end for end in ends]
        self.fixed = self.ends[min(self.table.fixed, len(self.ends)) - 1] + len(BETWEEN)
        self.resize_to(len(self.table.lines), self.ends[-1])

    def _fit_names(self, names: list[str]) -> None:
        """A third of the room where not everything fits."""
        text, aside = self._widths[0]
        whole = SIGN_WIDTH + sum(map(sum, self._widths)) + len(BETWEEN) * (len(self._widths) - 1)
        most = MOST_NAME if whole <= self.room else max(LEAST_NAME, self.room // 3 - aside)
        width = min(text, most)
        self._widths[0] = width, aside
        fit = fit_apart(names, width) if len(names) <= APART else [fit_left(name, width) for name in names]
        self._names = fit

    @property
    def _seen_to(self) -> int:
        """The whole width where no column is cut: the cursor is as wide as that."""
        edge = self.scroll_offset.x + self.room
        return edge if self.ends and self.ends[-1] <= edge else super()._seen_to

    def notify_style_update(self) -> None:
        """In ASCII the lines have other signs."""
        super().notify_style_update()
        self.call_after_refresh(self.refresh)

    def on_resize(self) -> None:
        self._lay_out()
        super().on_resize()
        self.refresh()

    def header(self) -> Text:
        """The titles, a sign behind the one that orders."""
        line, (ordering, descending) = " " * SIGN_WIDTH, self.table.order
        for title, (text, aside) in zip(self.table.titles, self._widths, strict=True):
            words = fit_right(title.text, text) + " " * aside if title.right else fit_left(title.text, text + aside)
            sign = ("▼" if descending else "▲") if title.source == ordering else " "
            line += words + (sign + BETWEEN[1:])
        return self.styled(line.rstrip(), "lines--header")

    def line(self, index: int) -> Text:
        line = self.table.lines[index]
        here = line.key == self._key
        text = Text(no_wrap=True).append(CURSOR if here else " ", self.component_style("lines--sign"))
        if (place := self._signs.get(line.key)) is not None:
            text.append(glyphs_of(self.app).runs[place], plot_styles(self.app.theme_variables)[STYLE[RUN_ROLES[place]]])
        else:
            text.append(" ")
        text.append(" ")
        for column, (title, cell, width) in enumerate(
            zip(self.table.titles, self.table.cells[index], self._widths, strict=True)
        ):
            words = self._names[index] if column == 0 else (fit_right if title.right else fit_left)(cell.text, width[0])
            text.append(BETWEEN if column else "")
            text.append(words, self.component_style(_style(title, cell, column)))
            text.append(fit_left(cell.aside, width[1]), self.component_style("lines--quiet"))
        if here:
            text.append(" " * max(0, self.room - text.cell_len))
            text.stylize(self.component_style("lines--cursor"))
        return text

    # -- moving ----------------------------------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        if not self.table.lines:
            return
        before = self.index
        index = min(max(before + by, 0), len(self.table.lines) - 1)
        self._key = self.table.lines[index].key
        for changed in {before, index}:
            self.refresh_index(changed)
        self.bring_into_view(index)

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - 2))

    def on_click(self, event: events.Click) -> None:
        """One click selects, two open; on a title it orders."""
        if event.y == self.gutter.top:
            left = event.x - self.gutter.left
            x = left if left < self.fixed else left + self.scroll_offset.x
            source = next(
                (title.source for title, end in zip(self.table.titles, self.ends, strict=True) if x <= end), ""
            )
            if source:
                self.post_message(self.OrderAsked(source))
        elif (index := self.index_under(event)) is not None:
            self.action_move(index - self.index)
            if event.chain == 2:
                self.action_open()

    # -- keys ------------------------------------------------------------------------------------------------------

    def _ask(self, what: str) -> None:
        if (line := self.cursor) is not None:
            self.post_message(self.Asked(what, line))

    def action_open(self) -> None:
        self._ask("open")

    def action_draw(self) -> None:
        self._ask("draw")

    def action_pin(self) -> None:
        self._ask("pin")

    def action_describe(self) -> None:
        self._ask("describe")

    def action_order(self) -> None:
        self.post_message(self.OrderAsked(""))

    def action_columns(self) -> None:
        self.post_message(self.ColumnsAsked())

    def action_fold(self) -> None:
        self.post_message(self.FoldAsked())


def _widths(title: Title, column: tuple[Cell, ...]) -> tuple[int, int]:
    text = max(map(cell_len, (cell.text for cell in column)), default=0)
    aside = max((cell_len(cell.aside) for cell in column), default=0)
    least = cell_len(title.text) - (0 if title.right else aside)
    return min(max(text, least), MOST_NAME if not title.right else WIDEST), aside


def _style(title: Title, cell: Cell, column: int) -> str:
    if cell.tone:
        return f"lines--{cell.tone}"
    if cell.strong:
        return "lines--strong"
    return "lines--name" if column == 0 else "lines--value" if title.right else "lines--quiet"
