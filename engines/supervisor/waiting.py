"""A supervisor's wait for its device: it says where in the queue it stands, and hears a stop at once. Torch-free."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Sequence

from engines.basics.jsonl import RecordFollower
from engines.contract import commands as cmd
from engines.contract.events import CommandAnswer, EventWriter, Phase
from engines.contract.rundir import RunDirectory
from engines.host.queue import Busy, Place, standing

POLL_SECONDS = 0.5
ENDS_IT = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


class QueueWait:
    """One attempt in the queue. Every command but a stop is left for the engine, which reads them all."""

    def __init__(self, run: RunDirectory, attempt: int, place: Place, *, step: int, heard: Sequence[int]) -> None:
        self._attempt, self._place, self._step, self._heard = attempt, place, step, heard
        self._events = EventWriter(run.events, attempt)
        self._commands: RecordFollower[cmd.Command] = RecordFollower(run.commands, cmd.decoder)
        self._told = ""

    def until_turn(self) -> bool:
        """True when its turn has come, False after a stop. Raises `DataError` when its place was removed."""
        while True:
            with contextlib.suppress(Busy):
                number, before = self._place.look()
                if number == 0:
                    return True
                self._tell(standing(number, self._place.device, before))
            answer = signal.sigtimedwait(self._heard, POLL_SECONDS)
            if self._hears_stop() or (answer is not None and answer.si_signo in ENDS_IT):
                return False

    def _tell(self, detail: str) -> None:
        if detail != self._told:
            self._told = detail
            with contextlib.suppress(OSError):  # a full disk keeps nobody from waiting
                self._events.write(Phase(phase="queued", step=self._step, detail=detail))

    def _hears_stop(self) -> bool:
        stops = [order for order in self._commands.poll() if isinstance(order, cmd.Stop)]
        mine = [order for order in stops if order.attempt == self._attempt]
        for order in mine:
            with contextlib.suppress(OSError):
                self._events.write(CommandAnswer(command=order, state="applied", step=self._step), durable=True)
        return bool(mine)
