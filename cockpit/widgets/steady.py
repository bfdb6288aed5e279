"""Words on the screen that are painted again only when they change: a repaint costs the connection."""

from __future__ import annotations

from textual.visual import VisualType
from textual.widgets import Static


class Steady(Static):
    """A `Static` that may be told the same again and again."""

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        if content != self.content:
            super().update(content, layout=layout)
