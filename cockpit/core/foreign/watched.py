"""Logs that are watched together: the metrics of one, or of several over one another, and a line of facts of each."""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cockpit.core.foreign.kinds import Source
from cockpit.core.foreign.logs import Logs
from cockpit.core.metrics.overlay import MOST, by_metric, from_start, over_one_another
from cockpit.core.metrics.run_metrics import RunMetrics
from cockpit.core.plot.groups import LEADING, RUN_ROLES, Role, chart_and_role, grouped
from cockpit.core.series import Mark, Series

READ_SECONDS = 0.3
"""How long a poll goes on reading logs that come in pieces."""
TOLD = 2
"""Newest values in a line of facts."""


@dataclass(frozen=True)
class Facts:
    """What there is to say of one log without its charts."""

    path: Path
    name: str
    rows: int
    """Points of its longest metric."""
    newest: tuple[tuple[str, float], ...]
    problems: int
    place: int = 0
    """Of its lines among those of other logs, from 1; 0 where it has none."""


@dataclass(frozen=True)
class Choice:
    """What a person wants to see: one log alone, or all that are not hidden over one another."""

    alone: Path
    overlaid: bool = False
    hidden: frozenset[Path] = frozenset()


class WatchedLogs:
    """A `MetricSource` of the log that is chosen, or of several over one another; all are read.

    Of more than can be told apart the first are shown that are not hidden, each at its place as long as it is shown.
    `choose`, `overlay` and `toggle` may be called from another thread, and count from the next poll on.
    """

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self.choice = Choice(logs.sources[0].path)
        self.facts: tuple[Facts, ...] = ()
        """Of all logs as they were when last polled."""
        self._told: dict[Path, Facts] = {}
        self._shown = self.choice
        """As it was when last polled."""
        self._places: dict[Path, int] = {}
        """Of the logs over one another, from 1."""
        self._from_start: dict[Path, Mapping[str, Series]] = {}

    @property
    def title(self) -> str:
        return self._alone.title

    @property
    def _alone(self) -> Source:
        return next(source for source in self._logs.sources if source.path == self._shown.alone)

    @property
    def _overlaid(self) -> dict[int, Source]:
        """The logs over one another by their place; none where one is shown alone."""
        found = {self._places[source.path]: source for source in self._logs.sources if source.path in self._places}
        return dict(sorted(found.items()))

    def choose(self, path: Path) -> None:
        """The log to show where one is shown alone."""
        self.choice = replace(self.choice, alone=path)

    def overlay(self, overlaid: bool) -> None:
        """Show the logs over one another, or one alone."""
        self.choice = replace(self.choice, overlaid=overlaid)

    def toggle(self, path: Path) -> None:
        """Hide a log's lines among those of the others, or show them again."""
        self.choice = replace(self.choice, hidden=self.choice.hidden ^ {path})

    def poll(self) -> bool:
        """Read what is new in all logs; whether anything in any of them changed, or something else is to be shown."""
        until = time.monotonic() + READ_SECONDS
        grown: set[Path] = set()
        while (more := self._logs.poll()) and time.monotonic() < until:
            grown |= more
        grown |= more
        changed = bool(grown) or self._shown != self.choice
        self._shown = self.choice
        self._give_places(self._shown)
        for path in grown:
            self._from_start.pop(path, None)
        self._tell(grown)
        return changed

    def _give_places(self, choice: Choice) -> None:
        wanted = [one.path for one in self._logs.sources if choice.overlaid and one.path not in choice.hidden][:MOST]
        kept = {path: place for path, place in self._places.items() if path in wanted}
        free = (place for place in range(1, MOST + 1) if place not in kept.values())
        self._places = kept | {path: next(free) for path in wanted if path not in kept}

    def _tell(self, grown: Container[Path]) -> None:
        sources = self._logs.sources
        common = os.path.commonpath([source.path.absolute().parent for source in sources])
        for source in sources:
            if source.path in grown or source.path not in self._told:
                self._told[source.path] = _facts(source, os.path.relpath(source.path, common))
        self.facts = tuple(
            replace(self._told[source.path], place=self._places.get(source.path, 0)) for source in sources
        )

    def series(self) -> Mapping[str, Series]:
        if not self._shown.overlaid:
            return self._alone.series()
        for source in self._overlaid.values():
            if source.path not in self._from_start:
                self._from_start[source.path] = from_start(source.series())
        return over_one_another({place: self._from_start[one.path] for place, one in self._overlaid.items()})

    def charts(self, names: Iterable[str]) -> Mapping[str, Sequence[tuple[Role, str]]]:
        """A log's as everywhere; over one another what several logs have comes first, and of that what leads."""
        if not self._shown.overlaid:
            return grouped(names)
        charts = by_metric(names).items()
        return dict(sorted(charts, key=lambda one: (len(one[1]) == 1, chart_and_role(one[0])[0] not in LEADING)))

    def names(self) -> Mapping[str, str]:
        """What the lines mean where several logs have them."""
        return {RUN_ROLES[place - 1]: self._told[source.path].name for place, source in self._overlaid.items()}

    def problems(self) -> Sequence[str]:
        if not self._shown.overlaid:
            return self._alone.problems()
        told = ((self._told[source.path].name, source) for source in self._overlaid.values())
        return [f"{name}: {problem}" for name, source in told for problem in source.problems()]

    def marks(self) -> Sequence[Mark]:
        """Of a run's directory that is shown alone; other logs have none."""
        source = self._alone
        return source.marks() if isinstance(source, RunMetrics) and not self._shown.overlaid else ()


def _facts(source: Source, name: str) -> Facts:
    series = list(source.series().values())
    rows = max((len(one.value) for one in series), default=0)
    # What is watched first of all is the loss; else what came first.
    telling = sorted(
        (one for one in series if len(one.value)), key=lambda one: "loss" not in chart_and_role(one.name)[0]
    )
    newest = tuple((one.name, float(one.value[-1]) if np.isfinite(one.value[-1]) else np.nan) for one in telling[:TOLD])
    return Facts(source.path, name, rows, newest, len(source.problems()))
