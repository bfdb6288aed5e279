"""A full disk holds a training until there is room again, and nothing that it had to write is lost.

What the disk refused is tried again: by itself, and at once when a person says continue. Everything is in memory
meanwhile, so that the training goes on as if nothing had happened. Only a signal makes it leave without having written.
"""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from engines.basics import files
from engines.contract import commands as cmd
from engines.contract.alerts import FULL_DISK
from engines.contract.events import Alert, Event, EventWriter, Phase
from engines.contract.rundir import RunDirectory
from engines.runtime.listener import CommandListener

REFUSALS = (errno.ENOSPC, errno.EDQUOT)
LEAST_SECONDS, TIMES = 1.0, 10.0
"""The next try comes after so long, and after so many times what the last one took: a checkpoint may be large."""
LOOK_SECONDS = 0.1
RESERVE_BYTES = 1 << 16


def is_full(error: OSError) -> bool:
    """Whether the disk, or the person's part of it, has no room left."""
    return error.errno in REFUSALS


def reserve(run: RunDirectory) -> Path:
    """Keeps room for an engine's last words, and for saying that the disk is full; freed when they are to be said."""
    return run.attempts / ".engine-reserve.tmp"


def keep_reserve(run: RunDirectory) -> None:
    with contextlib.suppress(OSError):
        files.replace_bytes(reserve(run), bytes(RESERVE_BYTES))


def free_reserve(run: RunDirectory) -> None:
    with contextlib.suppress(OSError):
        reserve(run).unlink(missing_ok=True)


class Room:
    """Writes what a training has to write. Its events go through `write`, as through an `EventWriter`."""

    def __init__(
        self, run: RunDirectory, events: EventWriter, listener: CommandListener,
        place: Callable[[], tuple[int, int]] = lambda: (0, 0),
    ) -> None:  # fmt: skip
        """`place`: steps and epochs done."""
        self.attempt = events.attempt
        self.waits = True
        """Not in a try, where a full disk is what is to be found out."""
        self.writes = True
        """Not on the ranks beside the first, where nothing of this is done."""
        self.paused = 0.0
        """Seconds that the run was held: no part of how long an epoch takes."""
        self._run, self._events, self._listener, self._place = run, events, listener, place
        self._phase = Phase(phase="loading")
        self._told = False
        self._asked: list[cmd.Command] = []
        """To go on now."""

    def write(self, event: Event, *, durable: bool = False) -> None:
        """Append `event` when there is room for it. Raises OSError as `when_possible` does."""
        if isinstance(event, Phase):
            self._phase = event
        self.when_possible(lambda: self._events.write(event, durable=durable))

    def when_possible(self, write: Callable[[], object]) -> None:
        """Do `write`, which may be done again, as soon as there is room for it.

        Raises OSError for another fault than a full disk, and for that when a signal has asked the engine to leave.
        """
        if not self.writes:
            return
        first = time.monotonic()
        while True:
            began = time.monotonic()
            try:
                write()
                break
            except OSError as error:
                if not is_full(error) or not self.waits or self._listener.signalled:
                    raise
                self._answer("refused", "the disk is still full")
                self._tell()
            self._wait(max(LEAST_SECONDS, TIMES * (time.monotonic() - began)))
        self._answer("applied")
        if self._told:
            self.paused += time.monotonic() - first
            self._go_on()

    def _tell(self) -> None:
        """Say so into the reserve, once."""
        free_reserve(self._run)
        if self._told:
            return
        step, _ = self._place()
        text = f"the disk of {self._run.path.name} is full: the run is paused at step {step} until there is space"
        with contextlib.suppress(OSError):  # somebody else took that room: the next try tells
            self._events.write(Phase(phase="paused", step=step, detail="disk full, paused until there is space"))
            self._events.write(Alert(code=FULL_DISK, level="error", text=text, step=step))
            self._told = True

    def _go_on(self) -> None:
        self._told = False
        step, _ = self._place()
        text = "there is space again: the run continues"
        self.write(Alert(code=FULL_DISK, level="info", text=text, step=step, over=True))
        self.write(self._phase)
        keep_reserve(self._run)

    def _wait(self, seconds: float) -> None:
        """Until then, or until somebody wants it to go on or to leave."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and not self._listener.signalled and not self._asked:
            self._listener.wait(min(left, LOOK_SECONDS))
            self._asked = self._listener.take(*self._place(), kind=cmd.Continue)

    def _answer(self, state: Literal["applied", "refused"], reason: str = "") -> None:
        step, epoch = self._place()
        while self._asked:
            with contextlib.suppress(OSError):
                self._listener.answer(self._asked.pop(), state, step=step, epoch=epoch, reason=reason)
