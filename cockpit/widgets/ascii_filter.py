"""The last thing that happens to every line of every screen, where the terminal shows plain characters alone."""

from __future__ import annotations

from typing import Any

from rich.segment import Segment
from textual.app import App
from textual.color import Color
from textual.filter import LineFilter

from cockpit.core.ascii import text_in_ascii


class AsciiFilter(LineFilter):
    """Each character by one of ASCII in the same cells; styles stay."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(text_in_ascii(text), style, control) for text, style, control in segments]


def is_ascii_only(app: App[Any]) -> bool:
    """Whether the app shows ASCII alone: for those who can draw better with that in mind."""
    return any(isinstance(line_filter, AsciiFilter) for line_filter in app.get_line_filters())
