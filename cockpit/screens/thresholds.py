"""Thresholds of a run: every head with what it reaches, one with its curves, and keys that move them.

All is read and searched in threads; a key only looks up what is known. Nothing is saved but from the review of exactly
what would change.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.widgets import Static

from cockpit.core.format import number
from cockpit.core.plot.frame import Sign
from cockpit.core.text import plain, run_word
from cockpit.core.thresholds.review import NOTHING, Row, span
from cockpit.core.thresholds.saved import Saving, who
from cockpit.core.thresholds.tuning import Sheet, Tuning
from cockpit.screens.palette import ActionProvider
from cockpit.screens.thresholds_reading import ReviewingScreen
from cockpit.screens.thresholds_review import HistoryDialog, ReviewDialog
from cockpit.screens.unapplied import Answer, Changes, UnappliedScreen
from cockpit.widgets import thresholds_table
from cockpit.widgets.cursor_view import CursorView, Facts
from cockpit.widgets.curve_chart import CurveChart
from cockpit.widgets.footer import Footer
from cockpit.widgets.threshold_line import ThresholdLine
from cockpit.widgets.thresholds_table import MISSING, ThresholdsTable
from engines.basics.errors import UserError

WIDE = 110
NAMED = 4
"""Of changed thresholds, when the screen is left."""

_NEEDS = {
    "tune": "movable", "jump": "movable", "type": "movable", "optimise": "tunable", "optimise_all": "resampled",
    "lock": "nothing", "objective": "choice", "undo": "past", "restore": "change", "review": "all",
    "history": "nothing",
}  # fmt: skip
"""What has to be there for an action."""


class ThresholdsScreen(ReviewingScreen):
    CSS_PATH = "thresholds.tcss"
    CHANGING = tuple(_NEEDS)
    COMMANDS = {ActionProvider}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (36, "-tall")]
    BINDINGS = [
        Binding(
            "equals_sign", "type", "type", show=False, id="thresholds.type",
            tooltip="Type a threshold; or start with a digit",
        ),
        Binding("o", "optimise", "optimise", id="thresholds.optimise", tooltip="Set this one to its best threshold"),
        Binding("O", "optimise_all", "all", id="thresholds.all", tooltip="Set all unlocked to their best"),
        Binding("S", "review", "review", id="thresholds.review", tooltip="Review the changes, then save"),
        Binding("L", "lock", "lock", id="thresholds.lock", tooltip="Lock or unlock this threshold"),
        Binding("j", "objective", "objective", show=False, id="thresholds.objective", tooltip="Change the objective"),
        Binding("u", "undo", "undo", id="thresholds.undo", tooltip="Undo the last change"),
        Binding("backspace", "restore", "saved", show=False, id="thresholds.restore", tooltip="Back to what is saved"),
        Binding("h", "history", "history", show=False, id="thresholds.history", tooltip="Who saved what, and when"),
        Binding("R", "read", "read again", show=False, id="thresholds.read", tooltip="Read the newest best epoch"),
        Binding("escape", "back", "run", id="go.run", tooltip="Back to the run; asks about unsaved changes"),
    ]  # fmt: skip

    def compose(self) -> ComposeResult:
        yield Static("", id="title", markup=False)
        yield Static("", id="warning", markup=False)
        yield ThresholdsTable()
        with Horizontal(id="below"):
            yield CurveChart()
            yield CursorView()
        yield Static("", id="totals", markup=False)
        yield ThresholdLine()
        yield Footer()

    # -- showing ---------------------------------------------------------------------------------------------------

    def _line(self, tuning: Tuning, name: str) -> thresholds_table.Line:
        known = name in self._curves
        row = tuning.row(name) if known else None
        ranges = ("…", "…")
        if name in self._intervals:
            it = tuning.heads[name]
            why = tuning.review.no_interval(it).partition(":")[0]
            ranges = (span(it.interval, f"{MISSING} {why}".rstrip()), span(it.regret_set, MISSING))
        return thresholds_table.Line(name, tuning.new[name], tuning.review.saved[name], row, *ranges)

    def _show_all(self) -> None:
        if (tuning := self.tuning) is not None:
            lines = [self._line(tuning, name) for name in tuning.heads]
            table, review = self.query_one(ThresholdsTable), tuning.review
            table.show(lines, frozenset(tuning.locked), review.titles, sends=review.sends)
            self._show_selected()
            self.refresh_keys()

    def _show_one(self, name: str) -> None:
        if (tuning := self.tuning) is not None:
            table = self.query_one(ThresholdsTable)
            table.show_one(self._line(tuning, name))
            if name == table.selected:
                self._show_selected()
                self.refresh_keys()

    def _show_selected(self) -> None:
        tuning, name = self.tuning, self.query_one(ThresholdsTable).selected
        if tuning is None or not name:
            return
        it, at, known = tuning.heads[name], tuning.new[name], name in self._curves
        best = it.best if known else None
        signs = [Sign("checkpoint", tuning.review.saved[name])] + ([Sign("best", best)] if best is not None else [])
        drawn = self._curves.get(name, ())
        self.query_one(CurveChart).show_curves(f"{plain(name)}  {number(at)}", drawn, it.head.bounds, at, signs)
        view = self.query_one(CursorView)
        resampled = self._resampled(tuning, name) if name in self._intervals else []
        row = tuning.row(name) if known else None
        view.entitle(_at_cursor(row), it.head.objective.title)
        view.show_facts(None if row is None else Facts(it, row, best, tuning.review.titles.alarms, resampled))

    def _resampled(self, tuning: Tuning, name: str) -> list[str]:
        """What resampling says of a head, in lines."""
        it, parts = tuning.heads[name], []
        if it.regret_set:
            parts.append(f"nearly best {span(it.regret_set)}")
        if it.certainty:
            parts.append(f"moves for a gain > {number(it.certainty.least_gain)}")
        return [*parts, *filter(None, [tuning.review.no_interval(it)])]

    def _show_progress(self) -> None:
        if (tuning := self.tuning) is None:
            return
        table, heads = self.query_one(ThresholdsTable), len(tuning.heads)
        if len(self._curves) < heads:
            table.say(f"sorting {len(self._curves)}/{heads}")
        elif len(self._intervals) < heads:
            table.say(f"resampling {len(self._intervals)}/{heads}")
        else:
            table.say(f"{len(tuning.changed)} changed" if tuning.changed else "as saved")

    def _changed(self, name: str = "") -> None:
        """After a change of one head, or of more than one."""
        if (tuning := self.tuning) is None:
            return
        if name:
            self._show_one(name)
        else:
            self._show_all()
        self._show_progress()
        self.sum_soon(tuning)

    @on(ThresholdsTable.Selected)
    def _select(self, message: ThresholdsTable.Selected) -> None:
        self._wanted, self._moved = message.name, time.monotonic()
        self._show_selected()
        self.refresh_keys()

    # -- keys ------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey what cannot be done now."""
        tuning = self.tuning
        if action in ("back", "read"):
            return True
        if action not in _NEEDS:
            return super().check_action(action, parameters)
        if tuning is None or not (name := self.query_one(ThresholdsTable).selected):
            return None
        known = name in self._curves
        needs: Callable[[], bool] = {
            "nothing": lambda: True,
            "movable": lambda: known and name not in tuning.locked,
            "tunable": lambda: (
                name in self._intervals and name not in tuning.locked and tuning.heads[name].best is not None
            ),
            "resampled": lambda: self.resampled,
            "all": lambda: self.prepared,
            "choice": lambda: known and len(tuning.heads[name].objectives) > 1,
            "past": lambda: tuning.can_undo,
            "change": lambda: tuning.new[name] != tuning.review.saved[name] and name not in tuning.locked,
        }[_NEEDS[action]]
        return needs() or None

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str:
        tuning = self.tuning
        if tuning is None or not (name := self.query_one(ThresholdsTable).selected):
            return ""
        locked = f"{name} is locked; {self.key_of('thresholds.lock')} unlocks it." if name in tuning.locked else ""
        best = (
            f"{name} has no best threshold."
            if name in self._intervals
            else "Its best threshold is still being computed."
        )
        return {
            "movable": locked,
            "tunable": locked or best,
            "resampled": "The best thresholds are still being computed.",
            "all": "The review opens once all scores are sorted.",
            "choice": "There is only one objective.",
            "past": "Nothing to undo.",
            "change": locked or f"{name} is as saved.",
        }.get(_NEEDS.get(action, ""), "")

    def _try(self, change: Callable[[Tuning, str], object], *, every: bool = False) -> None:
        """Change something of the selected head; what is refused is reported."""
        if (tuning := self.tuning) is None:
            return
        name = self.query_one(ThresholdsTable).selected
        try:
            change(tuning, name)
        except UserError as error:
            self.notify(plain(str(error)), severity="warning", markup=False)
        else:
            self._changed("" if every else name)

    def action_tune(self, direction: int) -> None:
        self._try(lambda tuning, name: tuning.move(name, direction, coarse=False))

    def action_jump(self, direction: int) -> None:
        self._try(lambda tuning, name: tuning.move(name, direction, coarse=True))

    @on(CurveChart.Picked)
    def _put(self, message: CurveChart.Picked) -> None:
        if self.check_action("tune", ()):
            self._try(lambda tuning, name: tuning.set(name, round(message.threshold, 3)))

    def action_optimise(self) -> None:
        self._try(lambda tuning, name: tuning.optimise([name]))

    def action_optimise_all(self) -> None:
        self._try(lambda tuning, name: tuning.optimise(tuning.heads), every=True)

    def action_lock(self) -> None:
        self._try(lambda tuning, name: tuning.lock(name), every=True)

    def action_undo(self) -> None:
        self._try(lambda tuning, name: tuning.undo(), every=True)

    def action_restore(self) -> None:
        self._try(lambda tuning, name: tuning.restore(name))

    def action_objective(self) -> None:
        """Its curves and its best threshold are found again, in a thread."""
        if (tuning := self.tuning) is None:
            return
        name = self.query_one(ThresholdsTable).selected
        tuning.next_objective(name)
        self._curves.pop(name, None)
        self._intervals.discard(name)
        self._show_one(name)
        self._work(partial(self._prepare, tuning), "prepare")

    # -- typing ----------------------------------------------------------------------------------------------------

    def on_key(self, event: events.Key) -> None:
        """A digit begins a number."""
        if event.character and event.character in "0123456789." and self.check_action("type", ()):
            event.stop()
            self._type(event.character)

    def action_type(self) -> None:
        self._type("")

    def _type(self, text: str) -> None:
        self.query_one(ThresholdLine).open(self.query_one(ThresholdsTable).selected, text)

    @on(ThresholdLine.Typed)
    def _take_typed(self, message: ThresholdLine.Typed) -> None:
        self.query_one(ThresholdsTable).focus()
        if message.text is None:
            return
        try:
            value = float(message.text.replace(",", "."))
        except ValueError:
            self.notify(plain(f"{message.text!r} is not a number; expected one as in 0.45."), markup=False)
        else:
            self._try(lambda tuning, name: tuning.set(name, value))

    # -- reviewing and saving --------------------------------------------------------------------------------------

    def action_review(self) -> None:
        if (tuning := self.tuning) is None:
            return
        new = dict(tuning.new)
        self._work(lambda: self.app.call_from_thread(self._review, tuning, tuning.sheet(new)), "review")

    def _review(self, tuning: Tuning, sheet: Sheet) -> None:
        if tuning is self.tuning and self.is_active:
            tuning.shown(sheet)
            self.app.push_screen(ReviewDialog(sheet, tuning.review), partial(self._reviewed, tuning))

    def _reviewed(self, tuning: Tuning, save: bool | None) -> None:
        if not save:
            return

        def work() -> None:
            tuning.save(who=who(), now=self._clock())
            self.app.call_from_thread(self._saved, tuning)

        self._work(work, "save")

    def _saved(self, tuning: Tuning) -> None:
        self.notify(f"saved as reviewed in {plain(tuning.review.file.path.name)}", markup=False)
        self._changed()

    def action_history(self) -> None:
        if (tuning := self.tuning) is not None:
            review = tuning.review
            self._work(lambda: self.app.call_from_thread(self._tell_history, review.history()), "review")

    def _tell_history(self, savings: list[Saving]) -> None:
        if self.is_active:
            self.app.push_screen(HistoryDialog(savings))

    def action_read(self) -> None:
        self._open()

    def action_back(self) -> None:
        """What is not saved would be lost: asked before."""
        if (tuning := self.tuning) is None or not tuning.changed:
            self.dismiss()
            return
        saved, new = tuning.review.saved, tuning.new
        named = [f"{name} {number(saved[name])} → {number(new[name])}" for name in tuning.changed[:NAMED]]
        more = len(tuning.changed) - len(named)
        words = ", ".join(named) + (f" and {more} more" if more else "")
        why_not = "" if self.prepared else f"Review is possible once all {tuning.review.titles.heads} are sorted."
        self.app.push_screen(UnappliedScreen(Changes(words, "review, then save", why_not)), self._leave)

    def _leave(self, answer: Answer | None) -> None:
        if answer == "apply":
            self.action_review()
        elif answer == "drop":
            self.dismiss()

    def terminal_title(self) -> str:
        return f"thresholds of {run_word(self.run.path.name)}"


def _at_cursor(row: Row | None) -> str:
    """What is sent, beside what the model says, where that is not what is judged."""
    if row is None or row.sent is None:
        return "At the cursor"
    raw = row.raw or row.after or NOTHING
    return f"F1 as sent {number(row.sent.f1)} · raw {number(raw.f1)}"
