"""Above the thresholds: what saving would change, which is where it is done, and what was saved before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from cockpit.core.format import count, number
from cockpit.core.text import fit_left, plain
from cockpit.core.thresholds.review import NOTHING, Row, ThresholdReview
from cockpit.core.thresholds.saved import Saving
from cockpit.core.thresholds.tuning import Sheet
from cockpit.core.times import date_and_clock
from cockpit.screens.dialog import Dialog

NAME = 22
HEAD = f"{'':{NAME}} {'saved':>5}   {'new':<5} {'gain':>6}  {'F1':<11}  "
"""Before the title of the false alarms."""


class ReviewDialog(Dialog[bool]):
    """Gives whether to save; that can only be answered yes where there is something to save, and somewhere."""

    CSS_PATH = "confirm.tcss"
    BINDINGS = [
        Binding("enter,S", "save", "Save", id="thresholds.save", tooltip="Save them to the exported config"),
        Binding("escape,q", "keep", "Back", id="thresholds.keep", tooltip="Back without saving"),
    ]

    def __init__(self, sheet: Sheet, review: ThresholdReview) -> None:
        super().__init__()
        self._sheet, self._review = sheet, review

    def compose(self) -> ComposeResult:
        about, sheet = self._review.about, self._sheet
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "What saving changes"
            yield Static(plain(f"{about.checkpoint}: epoch {about.epoch}, step {count(about.step)}"), markup=False)
            with VerticalScroll(id="changes"):
                yield Static("\n".join(self._lines()), markup=False)
            yield Static("\n".join(_totals(sheet, self._review.counted)), classes="question", markup=False)
            if sheet.refusal:
                yield Static(plain(f"! {sheet.refusal}"), classes="refusal", markup=False)
            elif sheet.rows:
                yield Static(
                    Content.assemble(("enter", "b $accent"), f"  save to {plain(self._review.file.path.name)}")
                )
            yield Static("  [b $accent]esc[/]  back without saving")

    def _lines(self) -> list[str]:
        if not self._sheet.rows:
            return ["No threshold changed."]
        return [HEAD + self._review.titles.alarms, *(line for row in self._sheet.rows for line in _row(row))]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "save":
            return (not self._sheet.refusal and bool(self._sheet.rows)) or None
        return super().check_action(action, parameters)

    def action_save(self) -> None:
        self.dismiss(True)

    def action_keep(self) -> None:
        self.dismiss(False)


def _row(row: Row) -> list[str]:
    before, after = row.before or NOTHING, row.after or NOTHING
    line = f"{fit_left(plain(row.name), NAME)} {number(row.saved):>5} → {number(row.new):<5} {number(row.gained):>6}"
    for was, now in ((before.f1, after.f1), (before.alarm_rate, after.alarm_rate)):
        line += f"  {number(was):>5}→{number(now):<5}"
    return [line, *([f"  ! {row.flag}"] if row.flag else [])]


def _totals(sheet: Sheet, counted: Mapping[str, str]) -> list[str]:
    counts = {name: f"  mean of {words}" for name, words in counted.items()}
    return [
        plain(f"{name:26} {number(sheet.before[name]):>6} → {number(after):<6}{counts.get(name, '')}")
        for name, after in sheet.after.items()
    ]


class HistoryDialog(Dialog[None]):
    """Who saved what, newest first."""

    CSS_PATH = "confirm.tcss"
    BINDINGS = [Binding("escape,enter,q,h", "dismiss", "Close", id="thresholds.close", tooltip="Close the history")]

    def __init__(self, savings: Sequence[Saving]) -> None:
        super().__init__()
        self._savings = savings

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "History of saves"
            dialog.border_subtitle = "escape close"
            with VerticalScroll(id="changes"):
                lines = [line for saving in reversed(self._savings) for line in _saving(saving)]
                yield Static("\n".join(lines) or "Nothing saved yet.", markup=False)


def _saving(saving: Saving) -> list[str]:
    head = f"{date_and_clock(saving.time)}  {plain(saving.who)}  {plain(saving.checkpoint)} of epoch {saving.epoch}"
    changes = [
        f"  {fit_left(plain(name), NAME)} {number(saving.old.get(name)):>6} → {number(saving.new[name])}"
        for name in saving.changed
    ]
    return [head, *(changes or ["  reviewed as it was"])]
