"""Tables as text: numbers right-aligned, all else left-aligned, each column as wide as it must be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from rich.cells import cell_len

from cockpit.core.format import number
from cockpit.core.text import fit_left, fit_right, plain

BETWEEN = "  "


@dataclass(frozen=True)
class TextTable:
    """Cells of one width a column, padded."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, columns: Sequence[Any], rows: Sequence[Sequence[Any]]) -> TextTable:
        """Of values as they come: numbers, words, None for a gap. A short row ends in gaps, a long one is cut."""
        even = [[*row, *[None] * len(columns)][: len(columns)] for row in rows]
        titles = [plain(str(title)) for title in columns]
        cells = [[_cell(value) for value in row] for row in even]
        fits = [fit_right if _are_numbers([row[place] for row in even]) else fit_left for place in range(len(titles))]
        widths = [max(map(cell_len, texts)) for texts in zip(titles, *cells, strict=True)]
        padded = [
            tuple(fit(text, width) for fit, text, width in zip(fits, line, widths, strict=True))
            for line in (titles, *cells)
        ]
        return cls(padded[0], tuple(padded[1:]))

    @property
    def rule(self) -> tuple[str, ...]:
        """What stands between header and rows."""
        return tuple("-" * cell_len(title) for title in self.header)

    @property
    def ends(self) -> tuple[int, ...]:
        """Cells at which the columns end."""
        return tuple(accumulate(map(cell_len, self.header), lambda end, width: end + len(BETWEEN) + width))

    @property
    def markdown(self) -> list[str]:
        """Its lines in Markdown, without the padding."""
        return markdown([cell.strip() for cell in self.header], [[cell.strip() for cell in row] for row in self.rows])

    @property
    def width(self) -> int:
        return self.ends[-1] if self.header else 0


def _are_numbers(values: Sequence[Any]) -> bool:
    """Whether a column holds numbers, gaps aside."""
    present = [value for value in values if value is not None]
    return bool(present) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in present)


def _cell(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, float):
        return number(value, _float_format(abs(value)))
    return plain(str(value))


def _float_format(size: float) -> str:
    if 0 < size < 1e-4:
        return ".1e"
    if 1e9 <= size < math.inf:
        return ".2e"  # a column as wide as such a number leaves no room for others
    return ".4f" if size < 10 else ".2f" if size < 1000 else ",.0f"


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table; a bar in a cell is escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return ["| " + " | ".join(plain(cell).replace("|", r"\|") for cell in line) + " |" for line in lines]
