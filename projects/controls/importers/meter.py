"""How far the reading is, over all the files of one order."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the cockpit asks these modules whose data a path is, and needs no more of them
    from engines.tasks import TaskContext

_REPORTED = 1_000_000
"""Bytes between two reports: a stop is answered within a fraction of a second."""


class Meter:
    """Counts the bytes that were read of `total`, tells the context now and then, and passes on what readers say."""

    def __init__(self, context: TaskContext, total: int) -> None:
        self._context, self._total = context, total
        self._read = self._reported = 0

    def read(self, size: int) -> None:
        """Count `size` bytes more. Raises `StopRequested` when the work should end."""
        self._read += size
        if self._read - self._reported >= _REPORTED or self._read >= self._total:
            self._reported = self._read
            self._context.progress(self._read // 1000, max(self._total, self._read) // 1000, "kB")

    def say(self, text: str) -> None:
        """One line for the log."""
        self._context.log(text)
