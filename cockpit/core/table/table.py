"""The epoch table as text: fixed widths, numbers right-aligned, nothing moves while rows arrive."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from rich.cells import cell_len

from cockpit.core.format import fitted, number
from cockpit.core.metrics.weight_sets import WEIGHTED
from cockpit.core.table.rows import Row, row_value
from cockpit.core.text import fit_right, plain
from engines.contract.events import Epoch
from engines.contract.spec import Column

BEST_MARK = "*"
INTEGER_WIDTH = 4
THOUSANDS_WIDTH = 9
MARK_WIDTH = 2
WIDEST_TITLE = 20


class TableText:
    """Header, rule and rows of an epoch table for columns that a run announced, and so many `epochs` and `steps`."""

    def __init__(self, columns: Sequence[Column], epochs: int = 0, steps: int = 0) -> None:
        self.columns = tuple(columns)
        self._weighted = next((place for place, column in enumerate(columns) if column.source in WEIGHTED), -1)
        """The first column that depends on the loss weights: the row's mark stands before it, with a space between."""
        self._titles = [plain(column.title)[:WIDEST_TITLE] for column in columns]
        self.widths = [
            max(cell_len(title), _value_width(column, epochs, steps) + MARK_WIDTH * (place == self._weighted))
            for place, (title, column) in enumerate(zip(self._titles, columns, strict=True))
        ]

    @classmethod
    def within(
        cls, columns: Sequence[Column], width: int, epochs: int = 0, steps: int = 0, more: Sequence[Column] = ()
    ) -> TableText:
        """Of `columns` as many as `width` characters show: wide ones are left out, the last one first.

        Where all are shown, those of `more` too that have space beside them; `more` has all columns in their order.
        """
        text = cls(columns, epochs, steps)
        if text.width <= width:
            for column in more:
                shown = [one for one in more if one in text.columns or one is column]
                if (wider := cls(shown, epochs, steps)).width <= width:
                    text = wider
        while text.width > width and (wide := [place for place, one in enumerate(text.columns) if one.wide]):
            text = cls((*text.columns[: wide[-1]], *text.columns[wide[-1] + 1 :]), epochs, steps)
        return text

    @property
    def width(self) -> int:
        """Characters of a row with its mark."""
        return sum(self.widths) + max(len(self.widths) - 1, 0) + len(f" {BEST_MARK}")

    @property
    def ends(self) -> list[int]:
        """Where in a row its columns end, the last one with the row's mark."""
        ends = list(accumulate(self.widths, lambda end, width: end + 1 + width))
        return [*ends[:-1], self.width] if ends else []

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
            f"{mark:{MARK_WIDTH}}" + _cell(column, row, width - MARK_WIDTH)
            if place == self._weighted
            else _cell(column, row, width)
            for place, (column, width) in enumerate(columns)
        ]

    @property
    def mark_place(self) -> int | None:
        """Where in a row's line the mark of its loss weights stands."""
        return sum(self.widths[: self._weighted]) + self._weighted if self._weighted >= 0 else None

    def row(self, epoch: Epoch, mark: str = "") -> str:
        """The epoch's line, ending in ` *` when it was the best so far."""
        return " ".join(self.cells(epoch, mark)) + (f" {BEST_MARK}" if epoch.best else "")


def _value_width(column: Column, epochs: int, steps: int) -> int:
    """Room for a usual value: `0.500`, `1.0e-4`, the last epoch; for words what their format says (`9s`)."""
    spec = column.format
    if spec.endswith("s") and spec[:-1].isdecimal():
        return min(int(spec[:3].rstrip("s")), WIDEST_TITLE)
    if not spec.endswith("d"):
        return min(len(number(0.5, spec)), WIDEST_TITLE)
    if last := {"epoch": epochs, "step": steps}.get(column.source):
        return len(number(last, spec))
    return THOUSANDS_WIDTH if spec.endswith(",d") else INTEGER_WIDTH


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
