"""A task context for tests: keeps what it is told, and presses stop when asked to."""

from __future__ import annotations

from collections.abc import Mapping

from engines.tasks import StopRequested, Table


class Listener:
    """Collects progress and log lines; `stop_at` is the number of finished units at which stop is pressed."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.stop_at = stop_at
        self.told: list[tuple[int, int, str]] = []
        self.lines: list[str] = []
        self.tables: Mapping[str, Table] = {}

    def progress(self, done: int, total: int, unit: str) -> None:
        self.told.append((done, total, unit))
        self.check()

    def check(self) -> None:
        if self.told and self.stop_at == self.told[-1][0]:
            raise StopRequested

    def log(self, text: str) -> None:
        self.lines.append(text)

    def report(self, tables: Mapping[str, Table]) -> None:
        self.tables = tables
