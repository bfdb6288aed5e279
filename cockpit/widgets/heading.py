"""The line at the top of a screen: the program, the screen, and what it is about."""

from __future__ import annotations

from textual.content import Content


def heading(screen: str, *words: str | tuple[str, str] | Content) -> Content:
    """`◢ cockpit   Watch   …`, for the widget `#title`; `words` as for `Content.assemble`, made plain already."""
    return Content.assemble(("◢ cockpit", "bold $accent"), (f"   {screen}   ", "bold $foreground"), *words)
