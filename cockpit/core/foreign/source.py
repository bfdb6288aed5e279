"""One log of another program as a `MetricSource`."""

from __future__ import annotations

from pathlib import Path

from cockpit.core.foreign.collector import Collector
from cockpit.core.foreign.reader import Reader
from cockpit.core.metrics.metric_series import Series


class LogSource:
    """Follows one file and keeps its series."""

    def __init__(self, path: Path, kind: str, reader: Reader) -> None:
        self.title = str(path)
        self.path = path
        self.kind = kind
        self._reader = reader
        self._collector = Collector()
        self._unreadable = ""

    def poll(self) -> bool:
        """Read what is new, of a long log a piece, and say whether anything changed."""
        before, self._unreadable = self._unreadable, ""
        try:
            news = self._reader.poll()
        except OSError as error:
            self._unreadable = f"{self.path} cannot be read now ({error.strerror})."
            news = None
        if news is None:
            return self._unreadable != before
        if news.anew:
            self._collector = Collector()
        self._collector.add(news.rows)
        return True

    def series(self) -> dict[str, Series]:
        return self._collector.series()

    def problems(self) -> list[str]:
        unreadable = [self._unreadable] if self._unreadable else []
        return [*unreadable, *self._reader.problems(), *self._collector.problems()]
