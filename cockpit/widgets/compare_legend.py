"""What is drawn of a comparison: the sign each line has in the charts, how it stands, and how good it is."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text
from textual.content import Content
from textual.widget import Widget

from cockpit.core.text import fit_apart
from cockpit.widgets.ascii_filter import glyphs_of

AROUND = 46
"""Cells for what stands before and after a name."""
LEAST_NAME = 20
NOTHING = "Nothing is drawn: space on a line of the table draws it."


class CompareLegend(Widget):
    """One line each, above charts that are shown without the table."""

    DEFAULT_CSS = """
    CompareLegend { height: auto; max-height: 8; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(id="legend")
        self._lines: Sequence[tuple[int, str, str, str]] = ()

    def show(self, lines: Sequence[tuple[int, str, str, str]]) -> None:
        """Take the place in the charts, name, state and score of each line that is drawn."""
        if lines != self._lines:
            self._lines = lines
            self.refresh(layout=True)

    def notify_style_update(self) -> None:
        """In ASCII the lines have other signs."""
        super().notify_style_update()
        self.call_after_refresh(self.refresh)

    def render(self) -> Content | Text:
        if not self._lines:
            return Text(NOTHING, style="dim")
        most = max(self.size.width - AROUND, LEAST_NAME)
        names = [name for _, name, _, _ in self._lines]
        names = fit_apart(names, min(max(map(cell_len, names)), most))
        signs = glyphs_of(self.app).runs
        return Content("\n").join(
            Content.assemble(
                (f"{signs[place]} ", f"$run-{place + 1}"), (name, "$foreground"),
                (f"  {state:16}", "$quiet"), (f"  ★ {score}" if score else "", "$best"),
            )
            for (place, _, state, score), name in zip(self._lines, names, strict=True)
        )  # fmt: skip
