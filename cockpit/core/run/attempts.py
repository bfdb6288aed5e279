"""The attempts of a run, read again only while they can still change."""

from __future__ import annotations

from engines.contract.rundir import Attempt, RunDirectory


class AttemptFollower:
    """Keeps every attempt of one run; an ended one is read once."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._ended: dict[int, Attempt] = {}

    def poll(self) -> tuple[Attempt, ...]:
        """All attempts by number. Raises `DataError` for one that cannot be read."""
        attempts = []
        for number in self._run.attempt_numbers():
            attempt = self._ended.get(number) or self._run.attempt(number)
            if attempt.ended is not None:
                self._ended[number] = attempt
            attempts.append(attempt)
        return tuple(attempts)
