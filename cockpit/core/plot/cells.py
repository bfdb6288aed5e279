"""A picture made of characters: one text and one style a cell, comparable, so that only changes need be sent."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cockpit.core.text import cells_of

MOST = 4
"""Code points a cell holds: more marks over one character are left out."""


@dataclass(frozen=True, eq=False)
class Cells:
    """`texts: (height, width)` as of `cells_of`; `styles: (height, width)` indices of STYLES."""

    texts: npt.NDArray[np.str_]
    styles: npt.NDArray[np.uint8]

    @classmethod
    def blank(cls, width: int, height: int) -> Cells:
        shape = (max(height, 0), max(width, 0))
        return cls(np.full(shape, " ", dtype=f"U{MOST}"), np.zeros(shape, dtype=np.uint8))

    def write(self, x: int, y: int, text: str, style: int) -> None:
        """Put `text` at column `x` of row `y`; what is outside is left out, of a wide character half outside too."""
        rows, width = self.texts.shape
        cells = cells_of(text)
        left, stop = max(x, 0), min(x + len(cells), width)
        if not 0 <= y < rows or left >= stop:
            return
        row = self.texts[y]
        if row[left] == "":  # the other half of what stood there
            row[left - 1] = " "
        if stop < width and row[stop] == "":
            row[stop] = " "
        row[left:stop] = cells[left - x : stop - x]
        if row[left] == "":
            row[left] = " "
        if stop - x < len(cells) and cells[stop - x] == "":
            row[stop - 1] = " "
        self.styles[y, left:stop] = style

    def row(self, y: int) -> list[tuple[str, int]]:
        """Row `y` as runs of one style each."""
        if not 0 <= y < self.texts.shape[0]:
            return []
        texts, styles = self.texts[y].tolist(), self.styles[y]
        bounds = [0, *(np.flatnonzero(np.diff(styles)) + 1).tolist(), len(styles)]
        return [("".join(texts[first:stop]), int(styles[first])) for first, stop in pairwise(bounds) if stop > first]

    def changes(self, before: Cells) -> list[tuple[int, int, int]]:
        """What differs from a picture of the same size: (row, first column, column after the last)."""
        different = (self.texts != before.texts) | (self.styles != before.styles)
        behind = (self.texts == "") | (before.texts == "")  # the halves of a wide character are sent together
        different[:, :-1] |= different[:, 1:] & behind[:, 1:]
        different[:, 1:] |= different[:, :-1] & behind[:, 1:]
        rows = np.flatnonzero(different.any(axis=1))
        spans = ((int(y), np.flatnonzero(different[y])) for y in rows)
        return [(y, int(places[0]), int(places[-1]) + 1) for y, places in spans]
