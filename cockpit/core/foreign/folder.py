"""Several files of a folder that are one log: TensorBoard's events of one run, MLflow's file a metric."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from cockpit.core.foreign.reader import News, Reader


class FolderReader:
    """Reads the files that `files` names as one log, in that order; those too that appear later."""

    def __init__(self, path: Path, files: Callable[[Path], Iterable[Path]], reader: Callable[[Path], Reader]) -> None:
        self._path, self._files, self._reader = path, files, reader
        self._readers: dict[Path, Reader] = {}

    def poll(self) -> News | None:
        for file in self._files(self._path):
            if file not in self._readers:
                self._readers[file] = self._reader(file)
        found = [news for reader in self._readers.values() if (news := reader.poll()) is not None]
        if any(news.anew for news in found):  # rows of one file cannot be taken out of the others'
            self._readers = {file: self._reader(file) for file in self._readers}
            found = [news for reader in self._readers.values() if (news := reader.poll()) is not None]
            return News([row for news in found for row in news.rows], anew=True)
        return News([row for news in found for row in news.rows]) if found else None

    def problems(self) -> list[str]:
        return [f"{file.name}: {problem}" for file, reader in self._readers.items() for problem in reader.problems()]
