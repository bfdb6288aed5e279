"""A table of a comparison: names at the left stay in view, values that stand out are bright."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text

from cockpit.core.metrics.compare_tables import Cell, Table
from cockpit.core.text import fit_left
from cockpit.core.text_table import BETWEEN
from cockpit.widgets.line_view import LineView

WIDEST = 32


class CompareTable(LineView):
    COMPONENT_CLASSES = {"compare--header", "compare--name", "compare--value", "compare--strong"}
    DEFAULT_CSS = """
    CompareTable {
        height: 1fr;
        .compare--header { color: $quiet; }
        .compare--name { color: $name; }
        .compare--value { color: $quiet; }
        .compare--strong { color: $accent; text-style: bold; }
    }
    """
    FOLLOWS = False
    HEADER_LINES = 1

    def __init__(self, *, id: str, title: str) -> None:
        super().__init__(id=id, title=title)
        self._table = Table((), (), "")
        self._widths: list[int] = []

    def show(self, table: Table) -> None:
        """Take a table; the same again costs nothing."""
        if table == self._table:
            return
        columns = zip(table.header, *([cell.text for cell in row] for row in table.rows), strict=True)
        # a column never gets narrower: nothing jumps while values change
        widths = [min(max(map(cell_len, column)), WIDEST) for column in columns]
        before = self._widths if len(self._widths) == len(widths) else [0] * len(widths)
        self._table, self._widths = table, [max(pair) for pair in zip(widths, before, strict=True)]
        self.fixed = self._widths[0] + len(BETWEEN)
        self.resize_to(len(table.rows), sum(self._widths) + len(BETWEEN) * (len(widths) - 1))
        self.say(table.note.replace("[", r"\["))
        self.refresh()

    def header(self) -> Text:
        cells = map(fit_left, self._table.header, self._widths)
        return self.styled(BETWEEN.join(cells), "compare--header")

    def line(self, index: int) -> Text:
        name, *values = self._table.rows[index]
        line = self.styled(fit_left(name.text, self._widths[0]), "compare--name")
        for cell, width in zip(values, self._widths[1:], strict=True):
            line.append(BETWEEN).append_text(self._styled(cell, width))
        return line

    def _styled(self, cell: Cell, width: int) -> Text:
        return self.styled(fit_left(cell.text, width), "compare--strong" if cell.strong else "compare--value")
