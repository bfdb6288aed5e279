"""Logs that are watched together: of one of them the metrics, of each a line of facts."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cockpit.core.foreign.kinds import Source
from cockpit.core.foreign.logs import Logs
from cockpit.core.metrics.metric_series import Series
from cockpit.core.metrics.run_metrics import Mark, RunMetrics
from cockpit.core.plot.groups import chart_and_role

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


class WatchedLogs:
    """A `MetricSource` of the log that is chosen; all are read. `choose` may be called from another thread."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self.chosen = logs.sources[0].path
        self.facts: tuple[Facts, ...] = ()
        """Of all logs as they were when last polled."""
        self._told: dict[Path, Facts] = {}
        self._shown: Path | None = None

    @property
    def title(self) -> str:
        return self._source.title

    @property
    def _source(self) -> Source:
        return next(source for source in self._logs.sources if source.path == self.chosen)

    def choose(self, path: Path) -> None:
        """Show another log from the next poll on."""
        self.chosen = path

    def poll(self) -> bool:
        """Read what is new in all logs; whether anything in any of them changed, or another is chosen."""
        until = time.monotonic() + READ_SECONDS
        grown: set[Path] = set()
        while (more := self._logs.poll()) and time.monotonic() < until:
            grown |= more
        grown |= more
        sources = self._logs.sources
        common = os.path.commonpath([source.path.absolute().parent for source in sources])
        for source in sources:
            if source.path in grown or source.path not in self._told:
                self._told[source.path] = _facts(source, os.path.relpath(source.path, common))
        self.facts = tuple(self._told[source.path] for source in sources)
        changed = bool(grown) or self._shown != self.chosen
        self._shown = self.chosen
        return changed

    def series(self) -> Mapping[str, Series]:
        return self._source.series()

    def problems(self) -> Sequence[str]:
        return self._source.problems()

    def marks(self) -> Sequence[Mark]:
        """Of a run's directory; other logs have none."""
        source = self._source
        return source.marks() if isinstance(source, RunMetrics) else ()


def _facts(source: Source, name: str) -> Facts:
    series = list(source.series().values())
    rows = max((len(one.value) for one in series), default=0)
    # What is watched first of all is the loss; else what came first.
    telling = sorted(
        (one for one in series if len(one.value)), key=lambda one: "loss" not in chart_and_role(one.name)[0]
    )
    newest = tuple((one.name, float(one.value[-1]) if np.isfinite(one.value[-1]) else np.nan) for one in telling[:TOLD])
    return Facts(source.path, name, rows, newest, len(source.problems()))
