"""Words on the screen that are painted again only when they change: a repaint costs the connection."""

from __future__ import annotations

from textual.content import Content
from textual.visual import VisualType
from textual.widgets import Static


class Steady(Static):
    """A `Static` that may be given the same again and again."""

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        before = self.content
        if isinstance(content, Content) and isinstance(before, Content):
            same = content.is_same(before)  # equality of these is that of their text alone
        else:
            same = content == before
        if not same:
            super().update(content, layout=layout)
