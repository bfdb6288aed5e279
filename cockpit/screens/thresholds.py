"""Thresholds of a run: every control with what it reaches, one with its curves, and keys that move them.

All is read and searched in threads; a key only looks up what is known. Nothing is saved but from the review of exactly
what would change.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Footer, Static
from textual.worker import get_current_worker

from cockpit.core.format import number
from cockpit.core.plot.frame import Sign
from cockpit.core.plot.lines import Line as Curve
from cockpit.core.poller import Poller
from cockpit.core.review import HeadReview, ThresholdReview
from cockpit.core.saved_thresholds import Saving, who
from cockpit.core.text import plain, run_word
from cockpit.core.threshold_curves import curves
from cockpit.core.tuning import Sheet, Tuning
from cockpit.screens.palette import ActionProvider
from cockpit.screens.thresholds_review import HistoryDialog, ReviewDialog
from cockpit.widgets import controls_table
from cockpit.widgets.controls_table import ControlsTable
from cockpit.widgets.cursor_view import CursorView, Facts
from cockpit.widgets.curve_chart import CurveChart
from cockpit.widgets.threshold_line import ThresholdLine
from engines.contract.errors import UserError
from engines.contract.rundir import RunDirectory

STALE_SECONDS = 3.0
QUIET_SECONDS, RESAMPLE_SECONDS = 0.3, 2.0
"""Without a key, until what takes a while is begun: sums, and resampling, which takes the interpreter from keys."""
WIDE = 110


class ThresholdsScreen(Screen[None]):
    CSS_PATH = "thresholds.tcss"
    COMMANDS = {ActionProvider}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (36, "-tall")]
    BINDINGS = [
        Binding(
            "equals_sign", "type", "type", show=False, id="thresholds.type",
            tooltip="Type a threshold; a digit does as well",
        ),
        Binding("o", "optimise", "optimise", id="thresholds.optimise", tooltip="The best threshold of this control"),
        Binding("O", "optimise_all", "all", id="thresholds.all", tooltip="The best of every control but the locked"),
        Binding("L", "lock", "lock", id="thresholds.lock", tooltip="Keep this threshold as it is, or no longer"),
        Binding("j", "objective", "objective", show=False, id="thresholds.objective", tooltip="Judge it by another"),
        Binding("u", "undo", "undo", id="thresholds.undo", tooltip="Take back the last change"),
        Binding("backspace", "restore", "saved", show=False, id="thresholds.restore", tooltip="Back to what is saved"),
        Binding("d,S", "review", "review", id="thresholds.review", tooltip="What would change; saving is done there"),
        Binding("h", "history", "history", show=False, id="thresholds.history", tooltip="Who saved what, and when"),
        Binding("R", "read", "read again", show=False, id="thresholds.read", tooltip="Take the newest best epoch"),
        Binding("escape", "back", "run", id="go.run", tooltip="Back to the run; what is not saved is lost"),
    ]  # fmt: skip

    @dataclass
    class Opened(Message):
        """A review has been read."""

        review: ThresholdReview

    @dataclass
    class Prepared(Message):
        """A control can be moved at once from now on: its sweep is made, and its curves are."""

        it: HeadReview
        curves: tuple[Curve, ...]

    @dataclass
    class Summed(Message):
        """What all thresholds together reach."""

        before: Mapping[str, float | None]
        after: dict[str, float | None]

    @dataclass
    class Refused(Message):
        """Something could not be done: a sentence."""

        text: str

    class Stale(Message):
        """A newer best epoch or another exported config is there."""

    def __init__(self, run: RunDirectory, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self.run = run
        self._clock = clock
        self.tuning: Tuning | None = None
        self._curves: dict[str, tuple[Curve, ...]] = {}
        """Of what is prepared, by control."""
        self._intervals: set[str] = set()
        self._wanted = ""
        """The control to prepare next."""
        self._warned = False
        self._keys_state: list[bool | None] = []
        self._moved = 0.0
        self._summing = False
        self._totals: Timer | None = None
        self._poller = Poller("thresholds", self._look)

    def compose(self) -> ComposeResult:
        yield Static("", id="belongs", markup=False)
        yield Static("", id="warning", markup=False)
        yield ControlsTable()
        with Horizontal(id="below"):
            yield CurveChart()
            yield CursorView()
        yield Static("", id="totals", markup=False)
        yield ThresholdLine()
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.query_one(ControlsTable).focus()
        self.query_one("#belongs", Static).update("◢ Thresholds  reading the scores …")
        self._open()
        self._poller.start()

    def on_unmount(self) -> None:
        self._poller.stop()

    @property
    def prepared(self) -> bool:
        """Whether every control can be moved at once."""
        return self.tuning is not None and len(self._curves) == len(self.tuning.heads)

    # -- in threads ------------------------------------------------------------------------------------------------

    def _work(self, work: Callable[[], object], group: str) -> None:
        """Do it in a thread, in place of what the group still does; a failure becomes a sentence."""

        def guarded() -> None:
            try:
                work()
            except (UserError, OSError) as error:
                self.post_message(self.Refused(str(error)))

        self.run_worker(guarded, thread=True, group=group, exclusive=True)

    def _open(self) -> None:
        self._work(lambda: self.post_message(self.Opened(ThresholdReview(self.run))), "open")

    def _look(self) -> float:
        if self.tuning is not None and self.tuning.review.stale:
            self.post_message(self.Stale())
        return STALE_SECONDS

    def _prepare(self, tuning: Tuning) -> None:
        """Make sweeps, the selected control's first, then what resampling says."""
        worker = get_current_worker()
        left = {name: it for name, it in tuning.heads.items() if name not in self._curves}
        while left and not worker.is_cancelled:
            it = left.pop(self._wanted if self._wanted in left else next(iter(left)))
            it.prepare()
            self.post_message(self.Prepared(it, curves(it)))
        for name, it in tuning.heads.items():
            while time.monotonic() - self._moved < RESAMPLE_SECONDS and not worker.is_cancelled:
                time.sleep(QUIET_SECONDS / 3)
            if worker.is_cancelled:
                return
            if name not in self._intervals:
                _ = it.interval  # found and kept: seconds, where there are many frames
                self.app.call_from_thread(self._take_interval, it)

    def _sum(self, tuning: Tuning, new: dict[str, float]) -> None:
        try:
            review = tuning.review
            self.post_message(self.Summed(review.totals_saved, review.totals(new)))
        finally:
            self._summing = False

    # -- taking what they say --------------------------------------------------------------------------------------

    @on(Opened)
    def _take(self, message: Opened) -> None:
        tuning = Tuning(message.review)
        if self.tuning is not None:
            tuning.take_over(self.tuning)
        self.tuning = tuning
        self._curves.clear()
        self._intervals.clear()
        self.query_one("#belongs", Static).update(self._belongs(message.review))
        self._warn(message.review.warning or self._unexported(message.review))
        self._show_all()
        self._wanted = self.query_one(ControlsTable).selected
        self._work(partial(self._prepare, tuning), "prepare")

    @on(Prepared)
    def _take_prepared(self, message: Prepared) -> None:
        name = message.it.head.name
        if self.tuning is None or self.tuning.heads.get(name) is not message.it:
            return  # of an earlier review
        self._curves[name] = message.curves
        self._show_one(name)
        self._show_progress()
        if self.prepared:
            self._changed()

    def _take_interval(self, it: HeadReview) -> None:
        name = it.head.name
        if self.tuning is not None and self.tuning.heads.get(name) is it:
            self._intervals.add(name)
            self._show_one(name)
            self._show_progress()

    @on(Summed)
    def _take_totals(self, message: Summed) -> None:
        parts = [f"{name} {_change(message.before[name], value)}" for name, value in message.after.items()]
        self.query_one("#totals", Static).update(plain("in all  " + " · ".join(parts)), layout=False)

    @on(Refused)
    def _tell(self, message: Refused) -> None:
        if self.tuning is None:
            self.query_one("#belongs", Static).update("◢ Thresholds")
            self._warn(message.text)
        else:
            self.notify(plain(message.text), severity="error", timeout=10, markup=False)

    @on(Stale)
    def _tell_stale(self) -> None:
        self._warn("The run has a newer best epoch, or its exported config was changed: R reads it; changes are kept.")

    def _warn(self, sentence: str) -> None:
        warning = self.query_one("#warning", Static)
        warning.set_class(bool(sentence), "-shown")
        if sentence:
            warning.update(plain(f"! {sentence}"))

    def _belongs(self, review: ThresholdReview) -> str:
        about = review.about
        of = f"epoch {about.epoch} · step {about.step} · {about.checkpoint}"
        parts = [f"◢ Thresholds  {run_word(review.run.info.id)}  {of}"]
        if review.data:
            parts.append(f"validation sessions of {review.data}")
        return plain(" · ".join(parts))

    def _unexported(self, review: ThresholdReview) -> str:
        if review.file.content is not None:
            return ""
        return f"Nothing is exported to save into yet: `cockpit export {review.run.info.id}` makes it."

    # -- showing ---------------------------------------------------------------------------------------------------

    def _line(self, tuning: Tuning, name: str) -> controls_table.Line:
        known = name in self._curves
        interval = tuning.heads[name].interval if name in self._intervals else None
        row = tuning.row(name) if known else None
        return controls_table.Line(name, tuning.new[name], tuning.review.saved[name], row, interval)

    def _show_all(self) -> None:
        if (tuning := self.tuning) is not None:
            lines = [self._line(tuning, name) for name in tuning.heads]
            self.query_one(ControlsTable).show(lines, frozenset(tuning.locked))
            self._show_selected()
            self._refresh_keys()

    def _show_one(self, name: str) -> None:
        if (tuning := self.tuning) is not None:
            table = self.query_one(ControlsTable)
            table.show_one(self._line(tuning, name))
            if name == table.selected:
                self._show_selected()
                self._refresh_keys()

    def _show_selected(self) -> None:
        tuning, name = self.tuning, self.query_one(ControlsTable).selected
        if tuning is None or not name:
            return
        it, at, known = tuning.heads[name], tuning.new[name], name in self._curves
        best = it.best if known else None
        signs = [Sign("checkpoint", tuning.review.saved[name])] + ([Sign("best", best)] if best is not None else [])
        drawn = self._curves.get(name, ())
        self.query_one(CurveChart).show_curves(f"{plain(name)}  {number(at)}", drawn, it.head.bounds, at, signs)
        view = self.query_one(CursorView)
        view.entitle("At the cursor", it.head.objective.title)
        view.show_facts(Facts(it, tuning.row(name), best) if known else None)

    def _refresh_keys(self) -> None:
        """Grey and ungrey keys, if any changed: the footer is built anew each time."""
        state = [self.check_action(action, ()) for action in _NEEDS]
        if state != self._keys_state:
            self._keys_state = state
            self.refresh_bindings()

    def _show_progress(self) -> None:
        if (tuning := self.tuning) is None:
            return
        table, heads = self.query_one(ControlsTable), len(tuning.heads)
        if len(self._curves) < heads:
            table.say(f"sorting {len(self._curves)}/{heads}")
        elif len(self._intervals) < heads:
            table.say(f"resampling {len(self._intervals)}/{heads}")
        else:
            table.say(f"{len(tuning.changed)} changed" if tuning.changed else "as saved")

    def _changed(self, name: str = "") -> None:
        """After a change of one control, or of more than one."""
        if (tuning := self.tuning) is None:
            return
        self._warned = False
        if name:
            self._show_one(name)
        else:
            self._show_all()
        self._show_progress()
        self._moved = time.monotonic()
        if self._totals is not None:
            self._totals.stop()
        self._totals = self.set_timer(QUIET_SECONDS, partial(self._ask_totals, tuning))

    def _ask_totals(self, tuning: Tuning) -> None:
        """One sum at a time: with many frames each takes a while."""
        if self._summing:
            self._totals = self.set_timer(QUIET_SECONDS, partial(self._ask_totals, tuning))
            return
        self._summing = True
        self._work(partial(self._sum, tuning, dict(tuning.new)), "totals")

    @on(ControlsTable.Selected)
    def _select(self, message: ControlsTable.Selected) -> None:
        self._wanted, self._moved = message.name, time.monotonic()
        self._show_selected()
        self._refresh_keys()

    # -- keys ------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey what cannot be done now."""
        tuning = self.tuning
        if action in ("back", "read"):
            return True
        if action not in _NEEDS:
            return super().check_action(action, parameters)
        if tuning is None or not (name := self.query_one(ControlsTable).selected):
            return None
        known = name in self._curves
        needs: Callable[[], bool] = {
            "nothing": lambda: True,
            "movable": lambda: known and name not in tuning.locked,
            "tunable": lambda: known and name not in tuning.locked and tuning.heads[name].best is not None,
            "all": lambda: self.prepared,
            "choice": lambda: known and len(tuning.heads[name].objectives) > 1,
            "past": lambda: tuning.can_undo,
            "change": lambda: tuning.new[name] != tuning.review.saved[name] and name not in tuning.locked,
        }[_NEEDS[action]]
        return needs() or None

    def _try(self, change: Callable[[Tuning, str], object], *, every: bool = False) -> None:
        """Change something of the selected control; what is refused is told."""
        if (tuning := self.tuning) is None:
            return
        name = self.query_one(ControlsTable).selected
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
        """Its curves and its best threshold are found anew, in a thread."""
        if (tuning := self.tuning) is None:
            return
        name = self.query_one(ControlsTable).selected
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
        self.query_one(ThresholdLine).open(self.query_one(ControlsTable).selected, text)

    @on(ThresholdLine.Typed)
    def _take_typed(self, message: ThresholdLine.Typed) -> None:
        self.query_one(ControlsTable).focus()
        if message.text is None:
            return
        try:
            value = float(message.text.replace(",", "."))
        except ValueError:
            self.notify(plain(f"{message.text!r} is no number; expected one as in 0.45."), markup=False)
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
        """What is not saved is lost: said once before."""
        changed = self.tuning.changed if self.tuning else []
        if changed and not self._warned:
            self._warned = True
            self.notify(
                f"{len(changed)} changed and not saved: d reviews, escape again leaves them.", severity="warning"
            )
            return
        self.dismiss()

    def terminal_title(self) -> str:
        return f"thresholds of {run_word(self.run.path.name)}"


_NEEDS = {
    "tune": "movable", "jump": "movable", "type": "movable", "optimise": "tunable", "optimise_all": "all",
    "lock": "nothing", "objective": "choice", "undo": "past", "restore": "change", "review": "all",
    "history": "nothing",
}  # fmt: skip
"""What has to be there for an action."""


def _change(before: float | None, after: float | None) -> str:
    return number(after) if before == after else f"{number(before)} → {number(after)}"
