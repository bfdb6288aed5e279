"""Records what the machine does while an engine runs, so that the hours when nobody watched can be seen later.

One record every five seconds in `metrics/system/`, in the format of the steps, with the Unix time in the place of the
step: about 1.4 MB a day with one GPU and 0.6 MB for each further one.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from engines.basics.files import make_directory
from engines.host.machine import LocalMachine, Machine, measures

if TYPE_CHECKING:
    from engines.contract.steps import StepWriter

SECONDS = 5.0
FAMILY_SECONDS = 60.0
"""How often the engine's processes are looked for: that reads the whole process table, 6 ms where 500 run."""


class Recorder(threading.Thread):
    """A thread of the supervisor. Nothing that goes wrong in it touches the training, and nobody waits for its end."""

    def __init__(self, folder: Path, attempt: int, engine: int, machine: Machine | None = None) -> None:
        """`engine` is the id of the process whose memory is recorded, with that of all that descend from it."""
        super().__init__(name="recorder", daemon=True)
        self._folder, self._attempt, self._engine = folder, attempt, engine
        self._machine = machine
        self._writer: StepWriter | None = None
        self._stopping = threading.Event()
        self._warned = False
        self._family: list[psutil.Process] = []
        self._looked = -FAMILY_SECONDS

    def stop(self) -> None:
        """Ask it to end; returns at once."""
        self._stopping.set()

    def run(self) -> None:
        while not self._stopping.wait(SECONDS):
            try:
                self._record()
            except Exception as error:  # a driver may do anything, a disk may be full: the training goes on
                if not self._warned:
                    print(f"Machine load is not being recorded: {error!r}", file=sys.stderr, flush=True)
                self._warned = True

    def _record(self) -> None:
        """Take one reading and append it."""
        # only now: it takes 0.1 s of a core, which the engine has better use for when it starts
        import numpy as np

        from engines.contract.steps import ABSENT, FIXED, StepWriter

        if self._machine is None:
            self._machine = LocalMachine()
            self._machine.read(self._folder)  # tells nothing of the processor: that is a difference
            return
        values = measures(self._machine.read(self._folder)) | {"engine_memory": self._engine_memory()}
        if self._writer is None or not values.keys() <= set(self._writer.columns):
            make_directory(self._folder)
            if self._writer is not None:
                self._writer.close()
            self._writer = StepWriter(self._folder, list(values))
        columns = self._writer.columns[len(FIXED) :]
        self._writer.append(np.array([[time.time(), self._attempt, *(values.get(name, ABSENT) for name in columns)]]))

    def _engine_memory(self) -> float:
        """Resident bytes of the engine's processes; what they share counts for each."""
        if time.monotonic() >= self._looked + FAMILY_SECONDS:
            self._looked = time.monotonic()
            self._family = []
            with contextlib.suppress(psutil.Error):
                parent = psutil.Process(self._engine)
                self._family = [parent, *parent.children(recursive=True)]
        total = 0.0
        for process in self._family:
            with contextlib.suppress(psutil.Error):  # it may have ended meanwhile
                total += process.memory_info().rss
        return total
