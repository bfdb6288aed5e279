"""Other long work under the supervisor, such as making data: one mechanism for progress, log, stop and survival."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from engines.contract.tables import Table as Table
from engines.runtime.progress import StopRequested as StopRequested


class TaskContext(Protocol):
    """What a task is given to speak with."""

    def progress(self, done: int, total: int, unit: str) -> None:
        """Say how far the work is. Raises `StopRequested` when it should end."""
        ...

    def check(self) -> None:
        """Raises `StopRequested` when the work should end, where there is no progress to report."""
        ...

    def log(self, text: str) -> None:
        """One line for the log."""
        ...

    def report(self, tables: Mapping[str, Table]) -> None:
        """Write the report of the task's run, in the place of an earlier one: what it has found, as named tables."""
        ...
