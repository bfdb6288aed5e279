"""Steers a try from beside its loop, by the commands that a person would send."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.state import RunReader
from engines.runtime.listener import CommandListener

ATTEMPT = 1
LEAST_STEPS = 8
PATIENCE = 3
"""For so many times the seconds slow steps are waited for, up to `LEAST_STEPS`."""
POLL_SECONDS = 0.05
TELL_SECONDS = 1.0


class Driver:
    """Lets the loop step for `seconds` from its first step on, then evaluate, then stop. Use around the training."""

    def __init__(
        self, run: RunDirectory, listener: CommandListener, seconds: float, tell: Callable[[str], None]
    ) -> None:
        self._run, self._listener, self._seconds, self._tell = run, listener, seconds, tell
        self.unheard = False
        """No command could be written, and what stopped the loop was no signal from outside."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._drive, name="try", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()

    def _drive(self) -> None:
        if not self._stepped_enough():
            return
        try:
            self._evaluate()
            launch.send(self._run, cmd.Stop(attempt=ATTEMPT))
        except OSError:  # nothing can be written: the loop is stopped as by a signal, and fails to save
            self.unheard = self._listener.signalled = True

    def _stepped_enough(self) -> bool:
        """Wait for it; False when the training was over before."""
        began: float | None = None
        told = 0.0
        while not self._over.wait(POLL_SECONDS):
            now, steps = time.monotonic(), self._listener.step()
            if now - told > TELL_SECONDS:
                told = now
                self._tell(f"{steps} steps")
            if began is None:
                began = now if steps else None
            elif now - began > self._seconds * (1 if steps >= LEAST_STEPS else PATIENCE):
                return True
        return False

    def _evaluate(self) -> None:
        """And wait until that is done: a stop sent earlier would cut it short."""
        self._tell("evaluating")
        order = cmd.Evaluate(attempt=ATTEMPT)
        launch.send(self._run, order)
        reader = RunReader(self._run)
        while not self._over.wait(POLL_SECONDS):
            reader.poll()
            answer = reader.history.answer(order.id, ATTEMPT)
            if answer is not None and answer.state != "seen":
                return
