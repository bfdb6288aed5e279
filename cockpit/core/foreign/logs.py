"""Every log under the paths a person gave, those too that appear later in their folders."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from cockpit.core.foreign.kinds import Source, candidates, open_candidate, open_logs

SCAN_SECONDS = 2.0


class Logs:
    """Follows all of them together."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Raises `DataError` for a path that is no log and holds none."""
        self._paths = paths
        self._sources: dict[Path, Source] = {}
        self._no_logs: dict[Path, int] = {}
        """Files of the folders that were none, and their sizes then."""
        for source in (source for path in paths for source in open_logs(path)):
            self._sources.setdefault(source.path, source)
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
        """Look at what is new in the folders, and again at what was no log and has grown: thousands may be neither."""
        for place in (place for path in self._paths if path.is_dir() for place in candidates(path)):
            if place in self._sources:
                continue
            try:
                size = place.stat().st_size
            except OSError:
                continue  # it is gone again
            if self._no_logs.get(place) == size:
                continue
            if source := open_candidate(place):
                self._sources[place] = source
            else:
                self._no_logs[place] = size
