"""One log of another program as a `MetricSource`."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cockpit.core.foreign.collector import Collector
from cockpit.core.foreign.reader import Reader
from cockpit.core.series import Series


class LogSource:
    """Follows one file, or the files of a folder, and keeps their series."""

    def __init__(self, path: Path, kind: str, reader: Reader) -> None:
        self.title = str(path)
        self.path = path
        self.kind = kind
        self._reader = reader
        self._collector = Collector()
        self._unreadable = ""
        self._no_file = f"{path} is no longer a file; what was read before is shown."

    def poll(self) -> bool:
        """Read what is new, of a long log a piece, and say whether anything changed."""
        before, self._unreadable, news = self._unreadable, self._why_unreadable(), None
        if self._unreadable != self._no_file:
            try:
                news = self._reader.poll()
            except OSError as error:
                self._unreadable = f"{self.path} cannot be read now ({error.strerror})."
        if news is None:
            return self._unreadable != before
        if news.replaces:
            self._collector = Collector()
        self._collector.add(news.rows)
        return True

    def _why_unreadable(self) -> str:
        """A sentence, empty where nothing is known against it; a pipe would wait for its writer."""
        try:
            mode = os.stat(self.path).st_mode
            return "" if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else self._no_file
        except FileNotFoundError:
            return f"{self.path} is gone; what was read before is shown."
        except OSError as error:
            return f"{self.path} cannot be read now ({error.strerror})."

    def series(self) -> dict[str, Series]:
        return self._collector.series()

    def problems(self) -> list[str]:
        unreadable = [self._unreadable] if self._unreadable else []
        return [*unreadable, *self._reader.problems(), *self._collector.problems()]
