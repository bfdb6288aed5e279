"""The runs of the list as they were last heard of, and which of them have raised an alert since."""

from __future__ import annotations

from pathlib import Path

from cockpit.core.runs.fleet import FleetNews
from cockpit.core.runs.run_order import ordered
from cockpit.core.runs.summary import RunSummary
from engines.contract.events import Alert


class ListedRuns:
    def __init__(self) -> None:
        self._runs: dict[Path, RunSummary] = {}
        self._alerted: dict[Path, float] = {}
        """When the newest alert of each was raised; 0 without one."""

    def take(self, news: FleetNews) -> list[tuple[Path, Alert]]:
        """Take what changed; the alerts raised since their runs were heard of before, by the runs' paths."""
        raised = []
        for summary in news.changed:
            if (alert := self._raised(summary)) is not None:
                raised.append((summary.path, alert))
            self._runs[summary.path] = summary
        for path in news.gone:
            self._runs.pop(path, None)
            self._alerted.pop(path, None)
        return raised

    def ordered(self, written: str, now: float) -> list[RunSummary]:
        """All of them, in the order that is `written` in the settings."""
        return ordered(self._runs.values(), written, now)

    def _raised(self, now: RunSummary) -> Alert | None:
        """Its alert, if that is new; what was there when the list was opened or its link dropped is old."""
        if now.state in ("reading", "stale"):
            return None
        time, known = now.alert.time if now.alert else 0.0, self._alerted.get(now.path)
        self._alerted[now.path] = time
        return now.alert if known is not None and time > known else None
