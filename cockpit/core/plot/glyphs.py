"""The characters a chart is made of: braille dots, or plain ASCII where a terminal cannot show those."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

BRAILLE = 0x2800
BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of each dot of a braille character, by row and column."""


@dataclass(frozen=True)
class Glyphs:
    """How many dots a character holds, and the signs around them."""

    dots_wide: int
    dots_high: int
    corners: str
    """Upper left, upper right, lower left, lower right."""
    across: str
    down: str
    tick: str
    """Of the y axis."""
    mark: str
    """Of a tick on the x axis."""
    origin: str
    cursor: str
    signs: Mapping[str, str]
    """Of marks on the x axis, by their kind; `bad` is a value that is not finite."""
    samples: Mapping[str, str]
    """The look of a line, by its dash; with one dot a character also what the line is drawn with."""


UNICODE = Glyphs(
    2, 4, "╭╮╰╯", "─", "│", "┤", "┬", "└", "┊",
    {"bad": "×", "checkpoint": "◆", "resume": "↻", "edit": "▲", "best": "★"},
    {"solid": "━", "dashed": "╍", "dotted": "┅", "thin": "─"},
)  # fmt: skip
ASCII = Glyphs(
    1, 1, "++++", "-", "|", "+", "+", "+", ":",
    {"bad": "x", "checkpoint": "s", "resume": "r", "edit": "^", "best": "B"},
    {"solid": "*", "dashed": "o", "dotted": "#", "thin": "."},
)  # fmt: skip
