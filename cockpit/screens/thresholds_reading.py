"""The review behind the thresholds screen: read, sorted, summed and resampled in threads; a key only looks up."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from textual import on
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static
from textual.worker import get_current_worker

from cockpit.core import failures
from cockpit.core.format import count, number
from cockpit.core.plot.lines import Line as Curve
from cockpit.core.poller import Poller
from cockpit.core.text import plain, run_word
from cockpit.core.thresholds.curves import curves
from cockpit.core.thresholds.review import HeadReview, ThresholdReview
from cockpit.core.thresholds.tuning import Tuning
from cockpit.core.typed import typed
from cockpit.screens.changing_keys import ChangingKeysScreen
from cockpit.widgets.heading import heading
from cockpit.widgets.thresholds_table import ThresholdsTable
from engines.contract.rundir import RunDirectory
from engines.thresholds.adapter import AS_SENT

STALE_SECONDS = 3.0
QUIET_SECONDS, RESAMPLE_SECONDS = 0.3, 2.0
"""Without a key, until what takes a while is begun: sums, and resampling, which takes the interpreter from keys."""


class ReviewingScreen(ChangingKeysScreen):
    """A subclass composes the widgets and shows what is known in `_show_all`, `_show_one`, `_show_progress`."""

    @dataclass
    class Opened(Message):
        """A review has been read."""

        review: ThresholdReview

    @dataclass
    class Prepared(Message):
        """A head can be moved at once from now on: its tally is made, and its curves are."""

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
        """Of what is prepared, by head."""
        self._intervals: set[str] = set()
        self._wanted = ""
        """The head to prepare next."""
        self._moved = 0.0
        self._summing = False
        self._totals: Timer | None = None
        self._poller = Poller("thresholds", self._look)

    # -- for the subclass ------------------------------------------------------------------------------------------

    def _show_all(self) -> None:
        raise NotImplementedError

    def _show_one(self, name: str) -> None:
        """Of one head."""
        raise NotImplementedError

    def _show_progress(self) -> None:
        raise NotImplementedError

    def _changed(self, name: str = "") -> None:
        """After a change of one head, or of more than one."""
        raise NotImplementedError

    # -- reading ---------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.query_one(ThresholdsTable).focus()
        self._entitle("", "reading the scores …")
        self._open()
        self._poller.start()

    def on_unmount(self) -> None:
        self._poller.stop()

    @property
    def prepared(self) -> bool:
        """Whether every head can be moved at once."""
        return self.tuning is not None and len(self._curves) == len(self.tuning.heads)

    @property
    def resampled(self) -> bool:
        """Whether it is known of every head how large a gain moves it."""
        return self.tuning is not None and len(self._intervals) == len(self.tuning.heads)

    # -- in threads ------------------------------------------------------------------------------------------------

    def _work(self, work: Callable[[], object], group: str) -> None:
        """Do it in a thread, in place of what the group still does; a failure becomes a sentence."""

        guarded = failures.told(work, lambda sentence: self.post_message(self.Refused(sentence)))
        self.run_worker(guarded, thread=True, group=group, exclusive=True)

    def _open(self) -> None:
        self._work(lambda: self.post_message(self.Opened(ThresholdReview(self.run))), "open")

    def _look(self) -> float:
        if self.tuning is not None and self.tuning.review.stale:
            self.post_message(self.Stale())
        return STALE_SECONDS

    def _prepare(self, tuning: Tuning) -> None:
        """Make sweeps, the selected head's first, then what resampling says."""
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
                _ = it.certainty  # found and kept: seconds, where there are many frames
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
        review, before = message.review, self.tuning
        self._warn(review.warning or self._unexported(review))
        if before is not None:
            news = review.news_for(before.review)
            self.notify(f"read again: {news or 'nothing new'}; your changes and undo are kept", markup=False)
            if not news:
                before.review = review  # as new as its files are
                return
        self.tuning = tuning = Tuning(review)
        if before is not None:
            tuning.take_over(before)
        self._curves.clear()
        self._intervals.clear()
        self._entitle(run_word(review.run.info.id), self._belongs(review))
        self._show_all()
        self._wanted = self.query_one(ThresholdsTable).selected
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
            if self.resampled:
                self.refresh_keys()

    @on(Summed)
    def _take_totals(self, message: Summed) -> None:
        words = {name: _change(message.before[name], value) for name, value in message.after.items()}
        counted = self.tuning.review.counted if self.tuning is not None else {}
        parts = []
        for name, word in words.items():
            more = [f"sent {words[name + AS_SENT]}"] if name + AS_SENT in words else []
            more += [f"mean of {counted[name]}"] if name in counted else []
            if not name.endswith(AS_SENT):
                parts.append(f"{name} {word}" + (f" ({', '.join(more)})" if more else ""))
        self.query_one("#totals", Static).update(plain("overall: " + " · ".join(parts)), layout=False)

    @on(Refused)
    def _tell(self, message: Refused) -> None:
        if self.tuning is None:
            self._entitle("", "")
            self._warn(message.text)
        else:
            self.notify(plain(message.text), severity="error", timeout=10, markup=False)

    @on(Stale)
    def _tell_stale(self) -> None:
        self._warn(
            "The run has a newer best epoch, or its exported config changed: press R to read it; your changes are kept."
        )

    def _warn(self, sentence: str) -> None:
        warning = self.query_one("#warning", Static)
        warning.set_class(bool(sentence), "-shown")
        if sentence:
            warning.update(plain(f"! {typed(sentence)}"))

    def _entitle(self, run: str, about: str) -> None:
        words = ((plain(run), "$foreground"), "   ", (plain(about), "$quiet"))
        self.query_one("#title", Static).update(heading("Thresholds", *words))

    def _belongs(self, review: ThresholdReview) -> str:
        about = review.about
        of = f"epoch {about.epoch} · step {count(about.step)} · {about.checkpoint}"
        return f"{of} · validation {review.titles.groups} of {review.data}" if review.data else of

    def _unexported(self, review: ThresholdReview) -> str:
        if review.file.content is not None:
            return ""
        return f"There is no exported config to save to yet: make one with `cockpit export {review.run.info.id}`."

    # -- sums ------------------------------------------------------------------------------------------------------

    def sum_soon(self, tuning: Tuning) -> None:
        """Sum up what all thresholds together reach, when no key has come for a while."""
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


def _change(before: float | None, after: float | None) -> str:
    return number(after) if before == after else f"{number(before)} → {number(after)}"
