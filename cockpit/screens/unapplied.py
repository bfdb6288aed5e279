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
        Binding("a", "apply", "Apply", id="draft.apply", tooltip="Do with the changes what is said, then leave"),
        Binding("d", "dismiss('drop')", "Drop", id="draft.drop", tooltip="Leave; the changes are lost"),
    ]

    def __init__(self, changes: Changes) -> None:
        super().__init__()
        self._changes = changes

    def compose(self) -> ComposeResult:
        changes = self._changes
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "Changed and not applied"
            yield Static(plain(changes.what), markup=False, classes="question")
            if changes.why_not:
                yield Static(plain(changes.why_not), markup=False, classes="refusal")
            else:
                yield Static(f"    [b $accent]a[/]  {changes.apply}")
            yield Static("    [b $accent]d[/]  drop it and leave")
            yield Static("[b $accent]enter[/]  stay")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "apply" or not self._changes.why_not

    def action_apply(self) -> None:
        self.dismiss("apply")
