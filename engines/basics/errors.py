"""Errors meant for a person: one sentence that says what, where, what was expected and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A mistake a person can mend. Shown without a traceback; the exit code says whose fault it was.

    `exit_code` is 2 for wrong use (arguments, config) and 1 for everything else (data, disk, a busy run).
    """

    def __init__(self, message: str, *, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class DataError(UserError):
    """Data, a file or a directory is not what was expected (exit code 1)."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=1)


def nearest(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)` for the known name closest to `word`, or an empty string."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""
