"""Styles of a widget's components, found once: Textual forgets them at each repaint, and a line asks for many."""

from __future__ import annotations

from typing import Self

from rich.style import Style
from textual.geometry import Region
from textual.widget import Widget


class KeptStyles(Widget):
    """Keeps the styles of its components while only parts of it are painted again."""

    def component_style(self, name: str) -> Style:
        """Without what lies behind it, as a partial `get_component_rich_style`. Raises `KeyError` for no component."""
        kept: dict[str, Style] = self.__dict__.setdefault("_kept_styles", {})
        if (style := kept.get(name)) is None:
            style = kept[name] = self.get_component_styles(name).partial_rich_style
        return style

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """A change of a component's style asks for the whole."""
        if not regions:
            self.__dict__.pop("_kept_styles", None)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
