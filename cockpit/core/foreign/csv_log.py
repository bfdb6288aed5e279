"""CSV as loggers write it: names padded with spaces, blank cells, decimal commas, headers repeated or changed."""

from __future__ import annotations

import csv

from cockpit.core.foreign.reader import Misfit
from cockpit.core.foreign.rows import Row, row_of

DELIMITERS = (",", "\t", ";")
EMPTY = frozenset({"", "-", "--", "na", "n/a", "none", "null", "nil", "?"})
"""Cells that say that there is no value."""


class CsvParser:
    """Parses a CSV line after line; the first one names the columns."""

    def __init__(self) -> None:
        self._delimiter = ","
        self._comma = False
        """Whether numbers may have a decimal comma: it separates no cells."""
        self.names: list[str] = []
        self._numbers: set[str] = set()
        """Columns that have had a number."""
        self._text: dict[str, tuple[int, str]] = {}
        """Cells of those that were text: how many, and the first."""

    def __call__(self, line: bytes) -> Row | None:
        """None for a header or a remark above it. Raises ValueError for a row of another length than its header."""
        text = line.decode("utf-8-sig" if not self.names else "utf-8", "replace").rstrip("\r")
        if not self.names:
            if text.startswith("#"):
                return None
            self._delimiter = max(DELIMITERS, key=text.count)
            self._comma = self._delimiter != ","
        cells = split(text, self._delimiter)
        if is_header(cells) and (not self.names or _is_next_header(cells, self.names)):
            self.names = cells
            return None
        if len(cells) != len(self.names):
            raise Misfit(f"it has {len(cells)} cells under {len(self.names)} names")
        pairs = zip(self.names, cells, strict=True)
        record = {name: _value(cell, self._comma) for name, cell in pairs if name and cell}
        for name, value in record.items():
            if not isinstance(value, str):
                self._numbers.add(name)
            elif name in self._numbers and value.lower() not in EMPTY:
                count, first = self._text.get(name, (0, value))
                self._text[name] = count + 1, first
        return row_of(record)

    @property
    def left_out(self) -> str:
        """A sentence on cells that are no numbers under numbers; empty where all are."""
        if not self._text:
            return ""
        count = sum(number for number, _ in self._text.values())
        name, (_, first) = next(iter(self._text.items()))
        cells = "1 cell is" if count == 1 else f"{count} cells are"
        return f"{cells} text in a column of numbers and left out: the first is “{first[:20]}” in {name}."


def split(text: str, delimiter: str) -> list[str]:
    """The cells of one line, without the padding. Raises ValueError."""
    try:
        return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter, skipinitialspace=True), [])]
    except csv.Error as error:
        raise ValueError(str(error)) from None


def is_header(cells: list[str]) -> bool:
    """Whether cells can be the names of columns: words, each another one (an index may go without)."""
    return any(cells) and len(set(cells)) == len(cells) and all(_value(cell) is cell for cell in cells)


def _is_next_header(cells: list[str], names: list[str]) -> bool:
    """Whether a line of words further down names columns again, and is no row of text."""
    return bool(set(cells) & set(names))


def _value(cell: str, comma: bool = False) -> float | str:
    """A cell's number, or the cell itself where it is text."""
    try:
        return float(cell)
    except ValueError:
        return _value(cell.replace(",", ".", 1)) if comma and "," in cell else cell
