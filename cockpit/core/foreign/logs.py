"""Every log under the paths a person gave, those too that appear later in their folders."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from cockpit.core.foreign.kinds import Source, open_logs
from engines.contract.errors import DataError

SCAN_SECONDS = 2.0


class Logs:
    """Follows all of them together."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Raises `DataError` for a path that is no log and holds none."""
        self._paths = paths
        self._sources: dict[Path, Source] = {}
        for path in paths:
            self._add(open_logs(path))
        self._scan_due = time.monotonic() + SCAN_SECONDS

    @property
    def sources(self) -> list[Source]:
        return list(self._sources.values())

    def poll(self) -> set[Path]:
        """Read what is new and give the logs that changed, by their paths. Never raises for what files hold."""
        if time.monotonic() >= self._scan_due:
            self._scan()
            self._scan_due = time.monotonic() + SCAN_SECONDS
        return {path for path, source in self._sources.items() if source.poll()}

    def read_all(self) -> None:
        """Read all there is now, however long."""
        for source in self._sources.values():
            while source.poll():
                pass

    def _scan(self) -> None:
        for path in self._paths:
            if path.is_dir():
                try:
                    self._add(open_logs(path, known=self._sources))  # thousands are not opened again and again
                except DataError:
                    continue  # nothing new

    def _add(self, sources: Iterable[Source]) -> None:
        for source in sources:
            self._sources.setdefault(source.path, source)
