"""The keys of the screen below by area, with what each does; those that cannot be used now are dim."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from cockpit.core.text import plain
from cockpit.core.typed import typed
from cockpit.screens.dialog import Dialog

KEY_WIDTH = 10


class HelpScreen(Dialog[None]):
    CSS_PATH = "help.tcss"
    BINDINGS = [Binding("escape,question_mark,q", "dismiss", "Close", id="help.close", tooltip="Close this help")]

    def __init__(self, below: Screen[object], settings: Path) -> None:
        super().__init__()
        self._below, self._settings = below, settings

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help", classes="dialog") as dialog:
            dialog.border_title = "Keys"
            dialog.border_subtitle = "escape closes"
            yield Static(self._keys(), id="keys", markup=False)

    def _keys(self) -> Content:
        areas: dict[str, list[Content]] = {}
        for active in self._actions():
            area = (active.binding.id or "").partition(".")[0]
            areas.setdefault(area, []).append(self._line(active))
        parts = [
            Content("\n").join([Content.styled(area.title(), "bold $foreground"), *lines])
            for area, lines in areas.items()
        ]
        where = typed(f"Other keys: `keys` in {plain(str(self._settings))}; `cockpit keys` lists every id.")
        return Content("\n").join([*parts, Content.styled(f"\n{where}", "$quiet")])

    def _actions(self) -> Iterator[ActiveBinding]:
        """Every action once, by the first of its keys."""
        seen: set[tuple[object, str]] = set()
        for active in self._below.active_bindings.values():
            if active.binding.id and (active.node, active.binding.action) not in seen:
                seen.add((active.node, active.binding.action))
                yield active

    def _line(self, active: ActiveBinding) -> Content:
        key = self.app.get_key_display(active.binding)
        style = "bold $accent" if active.enabled else "$quiet"
        about = (active.tooltip or active.binding.description, "" if active.enabled else "$quiet")
        return Content.assemble((f"{key:>{KEY_WIDTH}}  ", style), about)
