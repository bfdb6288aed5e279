"""The keys of the screen below, with what each does; those that cannot be used now are dim."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static


class HelpScreen(ModalScreen[None]):
    CSS_PATH = "help.tcss"
    BINDINGS = [Binding("escape,question_mark,q", "dismiss", "Close", id="help.close", tooltip="Close this help")]

    def __init__(self, below: Screen[object]) -> None:
        super().__init__()
        self._below = below

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help", classes="dialog") as dialog:
            dialog.border_title = "Keys"
            dialog.border_subtitle = "escape closes"
            yield Static(self._keys(), id="keys", markup=False)

    def _keys(self) -> Text:
        lines: list[Text] = []
        seen: set[str] = set()
        for active in self._below.active_bindings.values():
            binding = active.binding
            if not binding.id or binding.action in seen:
                continue
            seen.add(binding.action)
            key = self.app.get_key_display(binding)
            colours = self.app.theme_variables
            style = f"bold {colours['accent']}" if active.enabled else colours["quiet"]
            about = (active.tooltip or binding.description, "" if active.enabled else colours["quiet"])
            lines.append(Text.assemble((f"{key:>8}  ", style), about))
        return Text("\n").join(lines)
