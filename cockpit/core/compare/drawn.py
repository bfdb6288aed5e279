"""What is drawn of a comparison: up to eight lines over one another, of a group its mean and how far it spreads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cockpit.core.compare.lines import Line
from cockpit.core.config.diff import ABSENT, words
from cockpit.core.metrics.overlay import MOST, from_start, over_one_another
from cockpit.core.metrics.run_metrics import RunMetrics
from cockpit.core.series import Series
from cockpit.core.text import plain

Log = Mapping[str, Series]


PIECE = 32
"""Runs that one poll reads for the first time: a group of hundreds must leave time for keys."""


@dataclass(frozen=True)
class Slot:
    """A line that is drawn."""

    line: Line

    @cached_property
    def facts(self) -> LineFacts:
        return facts_of(self.line)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        return tuple(entry.run.path for entry in self.line.entries)


@dataclass(frozen=True)
class LineFacts:
    """How a drawn line stands. `config` has single settings; None where none can be read, `problem` then says why."""

    name: str
    project: str = ""
    best: int | None = None
    """The epoch that the engine marked as best; None of a group."""
    config: Mapping[str, Any] | None = None
    problem: str = ""


@dataclass(frozen=True)
class Comparison:
    """All that is drawn, as it was at one moment: `series` has one mapping per line, in the order of `lines`."""

    lines: tuple[LineFacts, ...]
    series: tuple[Log, ...]
    places: tuple[int, ...] = ()
    """In the charts, from 0."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Score first, then validation, then training, then the rest; of several projects only what they share."""
        names = dict.fromkeys(name for series in self.series for name in series)
        if self.several_projects:
            with_any = [series for series in self.series if series]
            names = {name: None for name in names if all(name in series for series in with_any)}
        order = ("score", "validation.", "train.")
        rank = {
            name: next((n for n, start in enumerate(order) if name.startswith(start)), len(order)) for name in names
        }
        return tuple(sorted(names, key=lambda name: rank[name]))

    @property
    def several_projects(self) -> bool:
        return len({line.project for line in self.lines if line.project}) > 1


class DrawnLines:
    """A `MetricSource` of up to eight lines, each at a number of its own: metrics are called `2:train.loss` there.

    `draw` may be called from another thread and counts from the next poll on. A run's files are read once, however
    often its line is drawn and taken off again.
    """

    def __init__(self) -> None:
        self.title = "compare"
        self._wanted: tuple[Slot | None, ...] = ()
        self._drawn: tuple[Slot | None, ...] = ()
        self._readers: dict[Path, RunMetrics] = {}
        self._series: dict[int, Log] = {}
        self._paths: dict[int, tuple[Path, ...]] = {}

    def draw(self, slots: Sequence[Slot | None]) -> None:
        """Draw these lines from the next poll on. Raises `ValueError` for more than can be told apart."""
        if len(slots) > MOST:
            raise ValueError(f"{len(slots)} lines in one chart, of which {MOST} can be told apart")
        self._wanted = tuple(slots)

    def poll(self) -> bool:
        """Read what is new in all of them; whether anything changed. Never raises for what their files hold."""
        wanted, before = self._wanted, self._drawn
        self._drawn = wanted
        polled: dict[Path, bool] = {}
        changed = [slot.paths if slot else () for slot in wanted] != [slot.paths if slot else () for slot in before]
        fresh = 0
        for place, slot in enumerate(wanted, 1):
            if slot is None:
                continue
            new = self._paths.get(place) != slot.paths
            if new:
                self._series.pop(place, None)  # of what was drawn there before
            for entry in slot.line.entries:
                path = entry.run.path
                if path not in self._readers:
                    if fresh == PIECE:
                        break
                    fresh += 1
                    self._readers[path] = RunMetrics(entry.run, entry.name)
                if path not in polled:
                    polled[path] = self._readers[path].poll()
                new |= polled[path]
            if new and all(path in self._readers for path in slot.paths):
                logs = [from_start(self._readers[path].series()) for path in slot.paths]
                self._series[place] = logs[0] if len(logs) == 1 else mean_of(logs)
                self._paths[place] = slot.paths
                changed = True
        return changed

    @property
    def comparison(self) -> Comparison:
        """The lines that are drawn, in their order, with what is compared of them."""
        there = [(place, slot) for place, slot in enumerate(self._drawn) if slot is not None]
        return Comparison(
            tuple(slot.facts for _, slot in there),
            tuple(self._series.get(place + 1, {}) for place, _ in there),
            tuple(place for place, _ in there),
        )

    def series(self) -> Log:
        """Of the metrics that are compared."""
        compared = set(self.comparison.metrics)
        drawn = {place: self._series.get(place, {}) for place, slot in enumerate(self._drawn, 1) if slot is not None}
        every = over_one_another(drawn)
        return {name: one for name, one in every.items() if name.partition(":")[2] in compared}

    def problems(self) -> Sequence[str]:
        paths = {path: slot.line.name for slot in self._drawn if slot is not None for path in slot.paths}
        return [
            f"{name}: {problem}"
            for path, name in paths.items()
            if path in self._readers
            for problem in self._readers[path].problems()
        ]


def mean_of(logs: Sequence[Log]) -> dict[str, Series]:
    """Of each metric that several logs have the mean, with a band of one sample standard deviation around it.

    At the steps that all of these logs have: every point is a mean over the same runs, so one that stops early bends
    no line, it ends it. Where a value is not finite the mean is none either.
    """
    names = dict.fromkeys(name for log in logs for name in log)
    made = {}
    for name in names:
        members = [log[name] for log in logs if name in log and len(log[name].step)]
        if len(members) > 1:
            made[name] = _mean(name, members)
        elif members:
            made[name] = members[0]
    return made


def _mean(name: str, members: Sequence[Series]) -> Series:
    steps = members[0].step
    for one in members[1:]:
        steps = np.intersect1d(steps, one.step)
    places = [np.searchsorted(one.step, steps, "right") - 1 for one in members]
    values = np.stack([one.value[at] for one, at in zip(members, places, strict=True)])
    times = np.stack([one.time[at] for one, at in zip(members, places, strict=True)])
    with np.errstate(all="ignore"):
        mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
    return Series(
        name, steps, members[0].epoch[places[0]], times.mean(axis=0), mean,
        band=(mean - spread, mean + spread), start=np.nan,
    )  # fmt: skip


def facts_of(line: Line) -> LineFacts:
    """What the tables beside the charts need; of a group the settings that its runs share, else all their values."""
    first = line.entries[0]
    summary = first.summary
    project = summary.project if summary is not None else ""
    trees = [entry.settings.flat for entry in line.entries if entry.settings is not None]
    if not trees:
        return LineFacts(line.name, project, problem=first.problem)
    best = summary.best.epoch if summary is not None and summary.best is not None and not line.is_group else None
    config: dict[str, Any] = {}
    for key in dict.fromkeys(key for tree in trees for key in tree):
        values = [tree.get(key, ABSENT) for tree in trees]
        same = all(value == values[0] for value in values)
        config[key] = values[0] if same else ", ".join(dict.fromkeys(plain(words(value)) for value in values))
    return LineFacts(line.name, project, best, config, first.problem)
