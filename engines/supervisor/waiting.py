"""A run's places among the runs of its devices, and the wait for its turn, which hears a stop at once. Torch-free."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from engines.basics import yaml12
from engines.basics.errors import DataError
from engines.basics.jsonl import RecordFollower
from engines.contract import commands as cmd
from engines.contract.events import Checkpoint, CommandAnswer, EventWriter, Phase
from engines.contract.rundir import End, RunDirectory
from engines.host.facts import device_name, device_names
from engines.host.queue import Busy, Place, standing
from engines.runs.state import RunReader

POLL_SECONDS = 0.5
ENDS_IT = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


class Places:
    """At the device of the config, and at the other GPUs of a run with several ranks; from `take` to `release`."""

    def __init__(self, run: RunDirectory, config: Any, heard: Sequence[int]) -> None:
        """`config` as read, also a damaged one. `heard`: the signals that end a wait."""
        self._run, self._heard = run, heard
        self.device = str(yaml12.find(config, "launch", "device") or "")
        """As the config names it."""
        self.queue = yaml12.find(config, "launch", "queue") is True
        """Whether the run waits for its turn."""
        ranks = yaml12.find(config, "launch", "devices")
        self._ranks = ranks if isinstance(ranks, int) or ranks == "auto" else 1
        share = yaml12.amount(config, "launch", "share")
        self._share = share if share and 0 < share < 1 else 1.0
        self._places: list[Place] = []

    def take(self) -> str:
        """Take a place among the runs of the device; why there is none, if so.

        Only a training keeps others waiting: tasks (making data, play) are no work for the whole device.
        """
        if self._run.info.kind != "training":
            return ""
        device = device_name(self.device)
        try:
            self._add(device, waiting=self.queue)
            if not self.queue:
                for name in self._further_devices():
                    self._add(name, waiting=False)
        except (DataError, OSError) as error:
            if not self.queue:
                print(f"Runs waiting for {device} will not wait for this one: {error}", file=sys.stderr)
            return f"it cannot wait for {device}: {error}"
        return ""

    def await_turn(self, attempt: int) -> End | None:
        """Wait for the turn at each device; the end of the attempt, if it never comes."""
        saved = [event.step for event in RunReader(self._run).poll() if isinstance(event, Checkpoint)]

        def turn_comes(place: Place) -> bool:
            wait = QueueWait(self._run, attempt, place, step=max(saved, default=0), heard=self._heard)
            return wait.until_turn()

        device = self._places[0].device
        try:
            came = turn_comes(self._places[0])
            for device in self._further_devices() if came and len(self._places) == 1 else ():
                # one after the other, in the order of the cards: two runs cannot wait for each other
                self._add(device, waiting=True)
                came = came and turn_comes(self._places[-1])
        except (DataError, OSError) as error:
            return End(reason="failed", time=time.time(), error=f"it cannot wait for {device}: {error}")
        if not came:
            return End(reason="stopped", time=time.time(), exit_code=3, error=f"ended while waiting for {device}")
        return None

    def keep_fresh(self) -> None:
        """Tell those who tidy /tmp that they are in use."""
        for place in self._places:
            place.keep_fresh()

    def release(self) -> None:
        """Let the next one have its turn."""
        for place in self._places:
            place.release()

    def _add(self, device: str, *, waiting: bool) -> None:
        info = self._run.info
        self._places.append(Place(device, info.id, self._run.path, waiting=waiting, share=self._share))

    def _further_devices(self) -> list[str]:
        return device_names(self.device, self._ranks)[1:]


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
