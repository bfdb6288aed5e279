"""The user's own words on a run: label, notes and tags."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Input, Static

from cockpit.core.runs.labels import LONGEST_LABEL, LONGEST_NOTES
from cockpit.core.runs.summary import RunSummary
from cockpit.core.text import plain
from cockpit.screens.dialog import Dialog


class LabelScreen(Dialog[tuple[str, str, str] | None]):
    """Gives label, notes and tags as typed, or None to leave them."""

    CSS_PATH = "label.tcss"
    BINDINGS = [Binding("escape", "dismiss", "Close", id="label.close", tooltip="Close without saving")]

    def __init__(self, row: RunSummary) -> None:
        super().__init__()
        self._row = row

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="label-and-notes") as dialog:
            dialog.border_title = "Label and notes"
            dialog.border_subtitle = "enter save   tab other field   escape close"
            yield Static(plain(self._row.id), markup=False, classes="run")
            yield Static("label", classes="field")
            yield Input(plain(self._row.label), id="label", max_length=LONGEST_LABEL, compact=True)
            yield Static("notes", classes="field")
            yield Input(plain(self._row.notes), id="notes", max_length=LONGEST_NOTES, compact=True)
            yield Static("tags", classes="field")
            yield Input(
                plain(" ".join(self._row.tags)),
                id="tags",
                placeholder="good slow (filter: tag:good)",
                compact=True,
            )

    @on(Input.Submitted)
    def _save(self) -> None:
        label, notes, tags = (self.query_one(f"#{name}", Input).value for name in ("label", "notes", "tags"))
        self.dismiss((label, notes, tags))
