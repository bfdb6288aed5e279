"""Taking loss weights that were kept under a name, or keeping those on the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from cockpit.core.text import plain
from cockpit.screens.dialog import Dialog


@dataclass(frozen=True)
class Wish:
    """To take the preset of this name, or to keep the weights under it."""

    name: str
    save: bool


class PresetScreen(Dialog[Wish | None]):
    CSS_PATH = "presets.tcss"
    BINDINGS = [Binding("escape", "dismiss", "Close", id="presets.close", tooltip="Change nothing")]

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self._names = names

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="presets") as dialog:
            dialog.border_title = "Presets of loss weights"
            dialog.border_subtitle = "enter take or keep   tab other field   escape close"
            if self._names:
                yield OptionList(*(Option(plain(name), id=name) for name in self._names), compact=True, markup=False)
            else:
                yield Static("None is kept for this project yet.", classes="field")
            yield Static("keep the new weights as", classes="field")
            yield Input(placeholder="a name", id="name", max_length=40, compact=True)

    @on(OptionList.OptionSelected)
    def _take(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(Wish(str(event.option_id), save=False))

    @on(Input.Submitted)
    def _keep(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self.dismiss(Wish(event.value.strip(), save=True))
