"""The line at the top of a screen, and words from outside in titles and lists, which Textual reads as markup."""

from __future__ import annotations

from textual.content import Content

from cockpit.core.text import plain


def heading(screen: str, *words: str | tuple[str, str] | Content) -> Content:
    """`◢ cockpit   Watch   …`, for the widget `#title`; `words` as for `Content.assemble`, made plain already."""
    return Content.assemble(("◢ cockpit", "bold $accent"), (f"   {screen}   ", "bold $foreground"), *words)


def literal(text: str) -> Content:
    """Words as they are, for titles of frames and entries of lists: a `[` in a name from outside is no markup."""
    return Content(plain(text))
