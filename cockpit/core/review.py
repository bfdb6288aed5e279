"""A run's thresholds under review: those in force, what each head reaches at any other, and which is best."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cockpit.core.saved_thresholds import SavedThresholds
from engines.contract import spec as specs
from engines.contract import yaml12
from engines.contract.errors import DataError, UserError
from engines.contract.rundir import RunDirectory
from engines.contract.state import RunReader
from engines.thresholds.adapter import ThresholdAdapter
from engines.thresholds.bootstrap import Interval, session_interval
from engines.thresholds.head import Head
from engines.thresholds.review import Review, read_review
from engines.thresholds.search import exact_optimum
from engines.thresholds.sweep import Sweep

FEW = 30
"""Fewer positives or negatives than this are told: a threshold from so few may be chance."""


@dataclass(frozen=True)
class Numbers:
    """What a head reaches at one threshold; None where a rate is undefined."""

    f1: float | None
    precision: float | None
    recall: float | None
    idle_rate: float | None
    objective: float | None


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

    @property
    def changed(self) -> bool:
        return self.new != self.saved


class HeadReview:
    """One head and its sweep, which is made when it is first needed."""

    def __init__(self, head: Head) -> None:
        self.head = head

    @cached_property
    def sweep(self) -> Sweep:
        """Raises `DataError` where a score is not a number."""
        return Sweep(self.head.scores, self.head.targets, self.head.idle)

    @cached_property
    def best(self) -> float | None:
        """The exact optimum, None where none can be chosen."""
        return None if self.head.untunable else exact_optimum(self.head).threshold

    @cached_property
    def interval(self) -> Interval | None:
        return None if self.head.untunable else session_interval(self.head)

    @cached_property
    def flag(self) -> str:
        """What a person should know before trusting this head's threshold."""
        head = self.head
        if head.untunable:
            return f"cannot tune: {head.untunable}; kept"
        if len(self.sweep.scores) == 1:
            return "all scores are equal"
        kinds = ((head.positives, "positive"), (head.negatives, "negative"))
        few = [f"{count} {kind}{'s' * (count > 1)}" for count, kind in kinds if count < FEW]
        return f"only {' and '.join(few)}" if few else ""

    def at(self, threshold: float) -> Numbers | None:
        """None where there is nothing to judge by."""
        if not len(self.head.scores) or np.isnan(self.head.scores).any():
            return None
        counts = self.sweep.at(threshold)
        idle = math.nan if self.head.idle is None else float(counts.idle_rate)
        rates = (counts.f1, counts.precision, counts.recall, idle, self.head.objective.value(counts))
        return Numbers(*(None if math.isnan(rate) else float(rate) for rate in rates))


class ThresholdReview:
    """The newest review of a run beside its exported config. Raises `UserError` where there is nothing to review."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self._adapter = _adapter(run)
        self._review = _review(run)
        self.about = self._review.about
        self.heads = {head.name: HeadReview(head) for head in self._adapter.heads(self._review.arrays)}
        self.file = SavedThresholds(run, self._adapter)
        self.saved = self.file.thresholds if self.file.content is not None else self._defaults()

    def _defaults(self) -> dict[str, float]:
        config, _ = yaml12.read(self.run.config.read_text(encoding="utf-8"))
        return self._adapter.defaults(config)

    @property
    def optimum(self) -> dict[str, float]:
        """The best threshold of each head that can be tuned, the one in force of all others."""
        return {name: self.saved[name] if it.best is None else it.best for name, it in self.heads.items()}

    def rows(self, new: Mapping[str, float]) -> list[Row]:
        return [
            Row(
                name=name,
                objective=it.head.objective.title,
                saved=self.saved[name],
                new=new[name],
                positives=it.head.positives,
                negatives=it.head.negatives,
                before=it.at(self.saved[name]),
                after=it.at(new[name]),
                flag=it.flag,
            )
            for name, it in self.heads.items()
        ]

    def totals(self, thresholds: Mapping[str, float]) -> dict[str, float | None]:
        """What all thresholds together reach, by name."""
        return self._adapter.totals(self._review.arrays, thresholds)

    @property
    def warning(self) -> str:
        """Why these numbers are not the exported config's; empty where they are, or where nothing is exported."""
        return self.file.mismatch(self.about)

    def save(self, new: Mapping[str, float], *, who: str, now: float) -> None:
        """Put `new` into the exported config. Raises `DataError` where it was not or is no longer what was read."""
        heads = (it.head for it in self.heads.values())
        support = {head.name: {"positives": head.positives, "negatives": head.negatives} for head in heads}
        self.file.save(new, about=self.about, support=support, who=who, now=now)


def _adapter(run: RunDirectory) -> ThresholdAdapter:
    info = run.info
    if info.kind != "training":
        raise UserError(f"{info.id} is a {info.kind} and has no thresholds.")
    reference = specs.find(info.project).thresholds
    if reference is None:
        raise UserError(f"The project {info.project!r} has no thresholds to review.")
    adapter: ThresholdAdapter = specs.load(reference)
    return adapter


def _review(run: RunDirectory) -> Review:
    if (review := read_review(run.review)) is not None:
        return review
    state = RunReader(run).status().state
    raise DataError(f"{run.info.id} has no review yet: each new best epoch writes one, and the run is {state}.")
