"""Which phase the run says it is in; what interrupts a phase gives it back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engines.contract.events import Phase, PhaseName
from engines.runtime.progress import Throttled
from engines.runtime.room import Room


class Phases:
    """Announces phases, with the step they began at."""

    def __init__(self, room: Room, step: Callable[[], int]) -> None:
        self._room, self._step, self._told = room, step, Throttled(room.write)
        self.current: PhaseName = "loading"

    def enter(self, phase: PhaseName, detail: str = "") -> None:
        self.current = phase
        self._room.write(Phase(phase=phase, step=self._step(), detail=detail))

    def progress(self, done: float, total: float, unit: str) -> None:
        """How far this phase is; not every call is written down."""
        self._told(done, total, unit, step=self._step())

    @contextmanager
    def during(self, phase: PhaseName) -> Iterator[None]:
        """Be in `phase` for a while, then in the one before again."""
        before, began = self.current, time.monotonic()
        self.enter(phase)
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            error.add_note(f"while {phase}")
            raise
        finally:
            if phase == "paused":
                self._room.paused += time.monotonic() - began
            self.enter(before)
