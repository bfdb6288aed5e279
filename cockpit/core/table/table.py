"""The epoch table as text: fixed widths, numbers right-aligned, nothing moves while rows arrive."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from rich.cells import cell_len

from cockpit.core.format import fitted, number
from cockpit.core.table.rows import Row, row_value
from cockpit.core.table.weight_sets import WEIGHTED
from cockpit.core.text import fit_right, plain
from engines.contract.events import Epoch
from engines.contract.spec import Column

BEST_MARK = "*"
INTEGER_WIDTH = 4
THOUSANDS_WIDTH = 9
WIDEST_TITLE = 20


class TableText:
    """Header, rule and rows of an epoch table for the columns that a run announced."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)
        self._titles = [plain(column.title)[:WIDEST_TITLE] for column in columns]
        self.widths = [
            max(cell_len(title), _value_width(column.format) + (column.source in WEIGHTED))
            for title, column in zip(self._titles, columns, strict=True)
        ]

    @property
    def width(self) -> int:
        """Characters of a row with its mark."""
        return sum(self.widths) + max(len(self.widths) - 1, 0) + len(f" {BEST_MARK}")

    def header(self) -> str:
        return " ".join(fit_right(title, width) for title, width in zip(self._titles, self.widths, strict=True))

    def rule(self) -> str:
        return "-" * self.width

    def cells(self, row: Row, mark: str = "") -> list[str]:
        """One padded cell a column; the best mark is not among them.

        `mark` stands before the values that depend on the loss weights (`WeightSets`): there is a place for it.
        """
        columns = zip(self.columns, self.widths, strict=True)
        return [
            (mark or " ") + _cell(column, row, width - 1) if column.source in WEIGHTED else _cell(column, row, width)
            for column, width in columns
        ]

    def mark_places(self) -> list[int]:
        """Where in a row's line marks of loss weights stand."""
        ends = accumulate(width + 1 for width in self.widths)
        columns = zip(self.columns, self.widths, ends, strict=True)
        return [end - 1 - width for column, width, end in columns if column.source in WEIGHTED]

    def row(self, epoch: Epoch, mark: str = "") -> str:
        """The epoch's line, ending in ` *` when it was the best so far."""
        return " ".join(self.cells(epoch, mark)) + (f" {BEST_MARK}" if epoch.best else "")


def _value_width(spec: str) -> int:
    """Room for a usual value: `0.500`, `1.0e-4`, a four-digit epoch; for words what their format says (`9s`)."""
    if spec.endswith("s") and spec[:-1].isdecimal():
        return min(int(spec[:-1]), WIDEST_TITLE)
    if spec.endswith(",d"):
        return THOUSANDS_WIDTH
    return INTEGER_WIDTH if spec.endswith("d") else min(len(number(0.5, spec)), WIDEST_TITLE)


def _cell(column: Column, row: Row, width: int) -> str:
    if isinstance(row, Epoch) and column.source in row.nonfinite:
        return fit_right("nan", width)
    value = row_value(column.source, row)
    if isinstance(value, int):
        return number(value, column.format).rjust(width)  # epoch 12,345 is worth a column
    if value is None and not isinstance(row, Epoch):
        return " " * width
    if value is None or isinstance(value, float):
        return fit_right(fitted(value, column.format, width), width)
    return fit_right(plain(str(value)), width)
