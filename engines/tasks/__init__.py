"""Other long work under the supervisor, such as making data: one mechanism for progress, log, stop and survival."""

from __future__ import annotations

from typing import Protocol


class StopRequested(Exception):
    """A person pressed stop: leave what is finished in order and let this pass."""


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
