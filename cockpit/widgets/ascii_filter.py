"""The last thing that happens to every line of every screen, where the terminal shows plain characters alone."""

from __future__ import annotations

from typing import Any

from rich.segment import Segment
from textual.app import App
from textual.color import Color
from textual.filter import LineFilter

from cockpit.core.ascii import text_in_ascii
from cockpit.core.plot.glyphs import ASCII, UNICODE, Glyphs


class AsciiFilter(LineFilter):
    """Each character by one of ASCII in the same cells; styles stay."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(text_in_ascii(text), style, control) for text, style, control in segments]


def glyphs_of(app: App[Any]) -> Glyphs:
    """What to draw with: in ASCII, characters chosen for it are better than translated ones."""
    return ASCII if any(isinstance(it, AsciiFilter) for it in app.get_line_filters()) else UNICODE
