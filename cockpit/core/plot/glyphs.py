"""The characters a chart is made of: braille dots, or plain ASCII where a terminal cannot show those."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cockpit.core import braille
from cockpit.core.plot.groups import RUN_ROLES

RUN_PLACES = {style: place for place, style in enumerate(RUN_ROLES)}


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
    runs: str
    """Signs of the lines of runs that share a chart, in their order."""
    lone: str
    """Of a point that no line joins."""
    samples: Mapping[str, str]
    """The look of a line, by its dash; with one dot a character also what the line is drawn with."""

    def sample(self, style: str, dash: str) -> str:
        """What stands for a line in a legend: its run's sign, else its look."""
        return self.run_sign(style) or self.samples[dash]

    def run_sign(self, style: str) -> str:
        """The sign of the run that has this style; empty for the style of another line."""
        return self.runs[RUN_PLACES[style]] if style in RUN_PLACES else ""


UNICODE = Glyphs(
    braille.ACROSS, braille.DOWN, "╭╮╰╯", "─", "│", "┤", "┬", "└", "┊",
    {"bad": "×", "checkpoint": "◆", "resume": "↻", "edit": "▲", "best": "★"},
    "●■▲◆○□△◇", "●",
    {"solid": "━", "dashed": "╍", "dotted": "┅", "thin": "─"},
)  # fmt: skip
ASCII = Glyphs(
    1, 1, "++++", "-", "|", "+", "+", "+", ":",
    {"bad": "x", "checkpoint": "s", "resume": "r", "edit": "^", "best": "B"},
    "abcdefgh", "*",
    {"solid": "*", "dashed": "o", "dotted": "#", "thin": "."},
)  # fmt: skip
