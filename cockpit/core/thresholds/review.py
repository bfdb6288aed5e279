"""A run's thresholds under review: those in force, what each head reaches at any other, and which is best."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from cockpit.core.config.run_config import read_config
from cockpit.core.thresholds.saved import SavedThresholds, Saving
from engines.basics import yaml12
from engines.basics.errors import DataError, UserError
from engines.contract import spec as specs
from engines.contract.rundir import RunDirectory
from engines.runs.state import RunReader
from engines.thresholds.adapter import ThresholdAdapter, Titles
from engines.thresholds.bootstrap import LEAST_GROUPS, Certainty, Interval, RegretSet, certainty
from engines.thresholds.head import Head
from engines.thresholds.objectives import F1, F1_LESS_ALARMS, Counts, Objective
from engines.thresholds.plateau import Optimum
from engines.thresholds.review import ABOUT, Review, read_review
from engines.thresholds.search import exact_optimum
from engines.thresholds.tally import Tally, raised

MOST_SENT = 16
"""Thresholds of a head whose sent frames are remembered as counts."""
FEW = 20
"""Fewer positives or negatives than this are flagged: a threshold from so few may be chance."""


@dataclass(frozen=True)
class Numbers:
    """What a head reaches at one threshold; None where a rate is undefined."""

    f1: float | None
    precision: float | None
    recall: float | None
    alarm_rate: float | None
    objective: float | None


NOTHING = Numbers(None, None, None, None, None)


@dataclass(frozen=True)
class Row:
    """One head: its threshold in force, a new one, and what both reach."""

    name: str
    objective: str
    saved: float
    new: float
    positives: int
    negatives: int
    before: Numbers | None
    after: Numbers | None
    flag: str
    gain: float | None
    """What the best threshold adds to the objective of the one in force."""
    raw: Numbers | None = None
    """Of the new threshold on what the model says, where another score is judged: that after hysteresis, say."""
    sent_before: Numbers | None = None
    sent: Numbers | None = None
    """Of what is sent in the end at the threshold in force and at the new one; None where a yes is what is sent."""

    @property
    def gained(self) -> float | None:
        """What the new threshold adds to the objective of the one in force."""
        before, after = (self.before or NOTHING).objective, (self.after or NOTHING).objective
        return None if before is None or after is None else after - before

    @property
    def changed(self) -> bool:
        return self.new != self.saved


class HeadReview:
    """One head and its tally, which is made when it is first needed, or taken from another review of these frames."""

    def __init__(self, head: Head, tally: Tally | None = None) -> None:
        self.head = head
        self._made = tally
        self._sent: dict[float, Counts] = {}
        """By threshold, of the last ones that were asked for."""
        self._row: Row | None = None
        """The last one: table and cursor show the same."""

    def aimed_at(self, objective: Objective) -> HeadReview:
        """The same frames, judged by another objective."""
        return HeadReview(replace(self.head, objective=objective), self._made)

    def prepare(self) -> None:
        """Find what a key may ask for at once: the tally and the best threshold."""
        if self.judged:
            _ = self.tally, self.optimum, self.flag

    @property
    def objectives(self) -> list[Objective]:
        """What makes sense for this head: its own objective, F1, and F1 less false alarms where there may be some."""
        alarms = [] if self.head.quiet is None else [F1_LESS_ALARMS]
        return list(dict.fromkeys([self.head.objective, F1, *alarms]))

    @property
    def tally(self) -> Tally:
        """Raises `DataError` where a score is not a number."""
        if self._made is None:
            self._made = Tally(self.head.scores, self.head.targets, self.head.quiet)
        return self._made

    @cached_property
    def judged(self) -> bool:
        """Whether there is anything to judge by: scores, all of them numbers."""
        return len(self.head.scores) > 0 and not np.isnan(self.head.scores).any()

    @cached_property
    def optimum(self) -> Optimum | None:
        """The exact one, None where none can be chosen."""
        return None if self.head.untunable else exact_optimum(self.head)

    @property
    def best(self) -> float | None:
        """The threshold of the optimum."""
        return None if self.optimum is None else self.optimum.threshold

    @cached_property
    def certainty(self) -> Certainty | None:
        """What resampling says; takes seconds with many frames."""
        return None if self.head.untunable else certainty(self.head)

    @property
    def interval(self) -> Interval | None:
        return self.certainty.interval if self.certainty else None

    @property
    def regret_set(self) -> RegretSet | None:
        """The thresholds that are nearly best."""
        return self.certainty.regret_set if self.certainty else None

    def gain(self, saved: float) -> float | None:
        """What the best threshold adds to the objective of `saved`, 0 or more; None where none can be chosen."""
        if self.optimum is None:
            return None
        return max(0.0, self.optimum.objective - float(self.head.objective.value(self.tally.at(saved))))

    def better(self, saved: float) -> float | None:
        """The best threshold where its gain over `saved` is above the least one, else None."""
        gain = self.gain(saved)
        return self.best if gain is not None and self.certainty and gain > self.certainty.least_gain else None

    @cached_property
    def flag(self) -> str:
        """What a person should know before trusting this head's threshold."""
        head = self.head
        if head.untunable:
            return f"cannot tune: {head.untunable}; kept"
        if head.scores.min() == head.scores.max():
            return "all scores are equal"
        kinds = ((head.positives, "positive"), (head.negatives, "negative"))
        few = [f"{count} {kind}{'s' * (count > 1)}" for count, kind in kinds if count < FEW]
        never = self.best is not None and self.best > head.scores.max()
        flags = ("the best never predicts +" if never else "", f"only {' and '.join(few)}" if few else "")
        return "; ".join(filter(None, flags))

    def at(self, threshold: float) -> Numbers | None:
        """None where there is nothing to judge by."""
        return self._numbers(self.tally.at(threshold)) if self.judged else None

    def raw_at(self, threshold: float) -> Numbers | None:
        """Of what the model says; None where that is what is judged."""
        head = self.head
        if not self.judged or head.raw is None:
            return None
        return self._numbers(head.counts(head.raw >= raised(np.asarray(threshold), head.raw.dtype)))

    def sent_at(self, threshold: float) -> Numbers | None:
        """Of what is sent in the end; None where a yes is what is sent."""
        if not self.judged or self.head.sent is None:
            return None
        if threshold not in self._sent:
            if len(self._sent) == MOST_SENT:
                self._sent.pop(next(iter(self._sent)))
            self._sent[threshold] = self.head.counts(self.head.sent(threshold))
        return self._numbers(self._sent[threshold])

    def _numbers(self, counts: Counts) -> Numbers:
        alarms = math.nan if self.head.quiet is None else float(counts.alarm_rate)
        rates = (counts.f1, counts.precision, counts.recall, alarms, self.head.objective.value(counts))
        return Numbers(*(None if math.isnan(rate) else float(rate) for rate in rates))

    def row(self, saved: float, new: float) -> Row:
        """What the threshold in force and a new one reach."""
        head, last = self.head, self._row
        if last is not None and (last.saved, last.new) == (saved, new):
            return last
        self._row = Row(
            name=head.name, objective=head.objective.title, saved=saved, new=new,
            positives=head.positives, negatives=head.negatives,
            before=self.at(saved), after=self.at(new), flag=self.flag, gain=self.gain(saved),
            raw=self.raw_at(new), sent_before=self.sent_at(saved), sent=self.sent_at(new),
        )  # fmt: skip
        return self._row


def span(of: Interval | RegretSet | None, otherwise: str = "") -> str:
    """A range of thresholds as tables show it."""
    return otherwise if of is None else f"{of.low:.3f}–{of.high:.3f}"


class ThresholdReview:
    """The newest review of a run beside its exported config. Raises `UserError` where there is nothing to review."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self._adapter = adapter_of(run)
        self._stamps = self._stamped()
        self._saving = threading.Lock()
        self._review = _review(run)
        self.about = self._review.about
        self.heads = {head.name: HeadReview(head) for head in self._adapter.heads(self._review.arrays)}
        self.file = SavedThresholds(run, self._adapter)
        config = read_config(run).tree
        self.saved = self.file.thresholds if self.file.content is not None else self._adapter.defaults(config)
        self.data = str(yaml12.find(config, "data", "path") or "")
        """Where the data lies that the scores are of; empty where the config does not say."""

    @property
    def titles(self) -> Titles:
        """What its project calls heads, groups and false alarms."""
        return self._adapter.titles

    @property
    def stale(self) -> bool:
        """Whether a newer review or another exported config has come since this was read."""
        with self._saving:  # what is saved from here is not another's
            return self._stamped() != self._stamps

    def news_for(self, earlier: ThresholdReview) -> str:
        """What differs from an `earlier` review of the run, in words; empty where it is the same once more."""
        parts = []
        if self.about != earlier.about:
            old, new = earlier.about.epoch, self.about.epoch
            parts.append(f"the scores are of epoch {new} now, not {old}" if new != old else "the scores have changed")
        if self.saved != earlier.saved or (self.file.content is None) != (earlier.file.content is None):
            parts.append("the exported thresholds have changed")
        return " and ".join(parts)

    def _stamped(self) -> list[tuple[int, int] | None]:
        return [_stamp(path) for path in (self.run.review / ABOUT, self.run.export / self._adapter.file)]

    @property
    def optimum(self) -> dict[str, float]:
        """The best threshold of each head that gains enough by it, the one in force of all others."""
        better = {name: it.better(self.saved[name]) for name, it in self.heads.items()}
        return {name: self.saved[name] if best is None else best for name, best in better.items()}

    def no_interval(self, it: HeadReview) -> str:
        """Why a head has no interval, in words; empty where it has one, or cannot be tuned."""
        titles, found = self.titles, it.certainty
        if found is None or found.interval is not None:
            return ""
        if found.groups < LEAST_GROUPS:
            return f"{found.groups} {titles.group if found.groups == 1 else titles.groups}: no interval"
        return f"{found.lonely} in one {titles.group}: no interval"

    def rows(self, new: Mapping[str, float]) -> list[Row]:
        return [it.row(self.saved[name], new[name]) for name, it in self.heads.items()]

    def totals(self, thresholds: Mapping[str, float]) -> dict[str, float | None]:
        """What all thresholds together reach, by name, and what is sent at them does."""
        arrays, heads = self._review.arrays, {name: it.head for name, it in self.heads.items()}
        return {**self._adapter.totals(arrays, thresholds), **self._adapter.sent_totals(arrays, heads, thresholds)}

    @cached_property
    def counted(self) -> Mapping[str, str]:
        """Of how many heads a total is the mean, by its name; nothing where all count."""
        return self._adapter.counted(self._review.arrays)

    @property
    def sends(self) -> bool:
        """Whether what is sent is not just what is on."""
        return any(it.head.sent is not None for it in self.heads.values())

    @cached_property
    def totals_saved(self) -> Mapping[str, float | None]:
        """The same of the saved thresholds."""
        return self.totals(self.saved)

    @property
    def warning(self) -> str:
        """Why these numbers are not the exported config's; empty where they are, or where nothing is exported."""
        return self.file.mismatch(self.about)

    def save(self, new: Mapping[str, float], *, who: str, now: float) -> None:
        """Put `new` into the exported config. Raises `DataError` where it was not or is no longer what was read."""
        heads = (it.head for it in self.heads.values())
        support = {head.name: {"positives": head.positives, "negatives": head.negatives} for head in heads}
        with self._saving:
            self.file.save(new, about=self.about, support=support, who=who, now=now)
            self._stamps = [self._stamps[0], _stamp(self.file.path)]  # a newer review stays news
        self.saved = dict(new)
        self.__dict__.pop("totals_saved", None)

    def history(self) -> list[Saving]:
        """Who saved what, oldest first; lines that cannot be read are left out."""
        return self.file.history()


def can_review(run: RunDirectory) -> bool:
    """Whether there are scores to choose thresholds by; cheap enough to ask every few seconds."""
    try:
        return (run.review / ABOUT).is_file() and specs.find(run.info.project).thresholds is not None
    except (UserError, OSError):
        return False


def adapter_of(run: RunDirectory) -> ThresholdAdapter:
    """What its project says about thresholds. Raises `UserError` where a run can have none."""
    info = run.info
    if info.kind != "training":
        raise UserError(f"{info.id} is a {info.kind} and has no thresholds.")
    reference = specs.of_run(info, "no thresholds to review").thresholds
    if reference is None:
        raise UserError(f"The project {info.project!r} has no thresholds to review.")
    adapter: ThresholdAdapter = specs.load(reference)
    return adapter


def _review(run: RunDirectory) -> Review:
    if (review := read_review(run.review)) is not None:
        return review
    state = RunReader(run).status().state
    raise DataError(f"{run.info.id} has no review yet: every new best epoch writes one; the run is {state}.")


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
