"""How the parts of a chart look, by the theme: as components of each chart they made 300 of them slow to open."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from rich.style import Style
from textual.color import Color

from cockpit.core.plot.frame import STYLES

VARIABLES = {
    "frame": "line", "title": "foreground", "selected": "accent", "axis": "quiet", "old": "faint", "step": "haze",
    "test": "good", "score": "best", "cursor": "accent", "checkpoint": "quiet",
}  # fmt: skip
"""Of the theme, where one is not called like the style."""
BOLD = {"title", "selected"}


def plot_styles(theme: Mapping[str, str]) -> tuple[Style, ...]:
    """In the order of `STYLES`, of a theme's variables; without what lies behind them."""
    return _styles(tuple(theme[VARIABLES.get(style, style)] for style in STYLES))


@functools.lru_cache(16)
def _styles(colours: tuple[str, ...]) -> tuple[Style, ...]:
    return tuple(
        Style(color=Color.parse(colour).rich_color, bold=True if style in BOLD else None)
        for style, colour in zip(STYLES, colours, strict=True)
    )
