"""Dots as braille characters: two wide and four high, so that dots are square in cells twice as high as wide."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


ACROSS, DOWN = 2, 4
CODES = range(0x2800, 0x2900)
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of each dot of a character, by row and column (Unicode, "Braille Patterns")."""


def characters(dots: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """`(height, width)` code points for `(4 · height, 2 · width)` dots, 0 where there is none."""
    import numpy as np  # not needed by the first screen, which knows the glyphs

    rows, columns = dots.shape
    blocks = dots.reshape(rows // DOWN, DOWN, columns // ACROSS, ACROSS)
    bits = np.einsum("hywx,yx->hw", blocks.astype(np.uint32), np.array(_BITS, dtype=np.uint32))
    return np.where(bits > 0, bits + CODES.start, 0).astype(np.uint32)
