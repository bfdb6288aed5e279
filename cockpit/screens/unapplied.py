"""What to do with changes that were made and not applied, when a person leaves the screen they were made on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Static

from cockpit.core.text import plain
from cockpit.screens.dialog import Dialog

Answer = Literal["apply", "drop"]


@dataclass(frozen=True)
class Changes:
    """`what` was changed, and what applying it does; `why_not` where it cannot be applied."""

    what: str
    apply: str
    why_not: str = ""


class UnappliedScreen(Dialog[Answer | None]):
    """Gives what to do with the changes; None where the person stays."""

    CSS_PATH = "confirm.tcss"
    BINDINGS = [
        Binding("escape,enter", "dismiss(None)", "Stay", id="draft.stay", tooltip="Back to the changes"),
        Binding("a", "apply", "Apply", id="draft.apply", tooltip="Apply or discard the changes, then close"),
        Binding("d", "dismiss('drop')", "Discard", id="draft.drop", tooltip="Discard the changes and close"),
    ]

    def __init__(self, changes: Changes) -> None:
        super().__init__()
        self._changes = changes

    def compose(self) -> ComposeResult:
        changes = self._changes
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "Unapplied changes"
            yield Static(plain(changes.what), markup=False, classes="question")
            if changes.why_not:
                yield Static(plain(changes.why_not), markup=False, classes="refusal")
            else:
                yield Static(f"    [b $accent]a[/]  {changes.apply}")
            yield Static("    [b $accent]d[/]  discard and close")
            yield Static("[b $accent]enter[/]  stay")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "apply" or not self._changes.why_not

    def action_apply(self) -> None:
        self.dismiss("apply")
