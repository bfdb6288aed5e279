"""A picture made of characters: one code and one style a cell, comparable, so that only changes need be sent."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len

BLANK = ord(" ")


@dataclass(frozen=True, eq=False)
class Cells:
    """`codes: (height, width)` code points, each one column wide; `styles: (height, width)` indices of STYLES."""

    codes: npt.NDArray[np.uint32]
    styles: npt.NDArray[np.uint8]

    @classmethod
    def blank(cls, width: int, height: int) -> Cells:
        shape = (max(height, 0), max(width, 0))
        return cls(np.full(shape, BLANK, dtype=np.uint32), np.zeros(shape, dtype=np.uint8))

    def write(self, x: int, y: int, text: str, style: int) -> None:
        """Put `text` at column `x` of row `y`; what is outside, or wider than a column, is left out."""
        for place, sign in enumerate(text, x):
            if 0 <= y < self.codes.shape[0] and 0 <= place < self.codes.shape[1]:
                self.codes[y, place] = ord(sign) if cell_len(sign) == 1 else ord("?")
                self.styles[y, place] = style

    def row(self, y: int) -> list[tuple[str, int]]:
        """Row `y` as runs of one style each."""
        if not 0 <= y < self.codes.shape[0]:
            return []
        styles = self.styles[y]
        bounds = [0, *(np.flatnonzero(np.diff(styles)) + 1).tolist(), len(styles)]
        text = self.codes[y].astype("<u4").tobytes().decode("utf-32-le")
        return [(text[first:stop], int(styles[first])) for first, stop in pairwise(bounds) if stop > first]

    def changes(self, before: Cells) -> list[tuple[int, int, int]]:
        """What differs from a picture of the same size: (row, first column, column after the last)."""
        different = (self.codes != before.codes) | (self.styles != before.styles)
        rows = np.flatnonzero(different.any(axis=1))
        spans = ((int(y), np.flatnonzero(different[y])) for y in rows)
        return [(y, int(places[0]), int(places[-1]) + 1) for y, places in spans]
