"""Several files of a folder that are one log: TensorBoard's events of one run, MLflow's file a metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cockpit.core.foreign.reader import News, Reader
from cockpit.core.foreign.rows import Row


@dataclass
class _Span:
    """When a file was written, by the times in it, and what it holds."""

    first: float = math.inf
    last: float = -math.inf
    names: set[str] = field(default_factory=set)
    number: int = 1
    """Which of the writers it is of that were at work at once."""

    def note(self, row: Row) -> None:
        if row.values and math.isfinite(row.time):
            self.first, self.last = min(self.first, row.time), max(self.last, row.time)
            self.names |= row.values.keys()

    def beside(self, other: _Span) -> bool:
        """Whether both wrote the same metrics at once: the later one is no restart of the earlier."""
        return self.first < other.last and other.first < self.last and not self.names.isdisjoint(other.names)


class FolderReader:
    """Reads the files that `files` names as one log, in that order; those too that appear later.

    Files that say the same at once are of several writers: those of the second and further ones have metrics of their
    own, `loss [writer 2]`. Where that is found out only later everything is read again, so that a log that was watched
    holds what it would hold if it were read afterwards.
    """

    def __init__(self, path: Path, files: Callable[[Path], Iterable[Path]], reader: Callable[[Path], Reader]) -> None:
        self._path, self._files, self._reader = path, files, reader
        self._readers: dict[Path, Reader] = {}
        self._spans: dict[Path, _Span] = {}

    def poll(self) -> News | None:
        for file in self._files(self._path):
            if file not in self._readers:
                self._readers[file], self._spans[file] = self._reader(file), _Span()
        found = self._read()
        again = any(news.replaces for news in found.values())
        if again:  # rows of one file cannot be taken out of the others'
            self._spans = {file: _Span() for file in self._readers}
            found = self._read_again()
        if self._tell_apart():
            found, again = self._read_again(), True
        rows = [self._named(row, self._spans[file].number) for file, news in found.items() for row in news.rows]
        return News(rows, replaces=again) if found or again else None

    def _read_again(self) -> dict[Path, News]:
        self._readers = {file: self._reader(file) for file in self._readers}
        return self._read()

    def _read(self) -> dict[Path, News]:
        found = {}
        for file, reader in self._readers.items():
            if (news := reader.poll()) is not None:
                found[file] = news
                for row in news.rows:
                    self._spans[file].note(row)
        return found

    def _tell_apart(self) -> bool:
        """Number the writers by all that is known by now: each file goes to the first that it can be of.

        Gives whether that is another one for any of them.
        """
        writers: list[list[_Span]] = []
        changed = False
        for span in self._spans.values():
            place = next((at for at, others in enumerate(writers) if not any(map(span.beside, others))), len(writers))
            if place == len(writers):
                writers.append([])
            writers[place].append(span)
            changed |= span.number != place + 1
            span.number = place + 1
        return changed

    @staticmethod
    def _named(row: Row, number: int) -> Row:
        if number == 1:
            return row
        values = {f"{name} [writer {number}]": value for name, value in row.values.items()}
        return row._replace(values=values, group=f"{row.group} writer {number}".strip())

    def problems(self) -> list[str]:
        found = [f"{file.name}: {problem}" for file, reader in self._readers.items() for problem in reader.problems()]
        if (writers := max((span.number for span in self._spans.values()), default=1)) > 1:
            found.append(
                f"{writers} programs wrote into this folder at the same time: each has series of its own, those from "
                "the second on with [writer 2] and so on in their names."
            )
        return found
