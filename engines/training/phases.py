"""Which phase the run says it is in; what interrupts a phase gives it back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engines.contract.events import Phase, PhaseName
from engines.runtime.room import Room


class Phases:
    """Announces phases, with the step they began at."""

    def __init__(self, room: Room, step: Callable[[], int]) -> None:
        self._room, self._step = room, step
        self.current: PhaseName = "loading"

    def enter(self, phase: PhaseName, detail: str = "") -> None:
        self.current = phase
        self._room.write(Phase(phase=phase, step=self._step(), detail=detail))

    @contextmanager
    def during(self, phase: PhaseName) -> Iterator[None]:
        """Be in `phase` for a while, then in the one before again."""
        before = self.current
        self.enter(phase)
        try:
            yield
        finally:
            self.enter(before)
