"""The run directory of a script that reports: its records written by the script's own process, in our formats."""

from __future__ import annotations

import math
import os
import platform
import sys
import time
from collections.abc import Mapping

from engines.basics.jsonl import RecordFollower
from engines.basics.lock import RunLock
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.rundir import Attempt, End, RunDirectory
from engines.host.facts import boot_id
from engines.reporter.losses import LossWatch
from engines.reporter.names import split_values, table_columns
from engines.reporter.steps import StepBuffer
from engines.runs.state import describe_end
from engines.runtime.attempt import EXIT_CODES
from engines.supervisor import notify, processes
from engines.supervisor.watchdog import Watchdog

FLUSH_SECONDS = 0.5
MOST_ROWS = 10_000
"""Kept while the disk takes nothing."""
ATTEMPT = 1
LEAST_SILENCE = 1800.0
"""Seconds that are no stall: a script does not say when it evaluates or saves."""


class ReportedRun:
    """Holds the run's lock from the start to `end`. Everything here raises OSError when the disk refuses.

    What the disk refused is kept and written with the next thing that it takes.
    """

    def __init__(self, run: RunDirectory, *, total_epochs: int) -> None:
        self.stop_requested = False
        self._run, self._total_epochs = run, total_epochs
        self._project = run.info.project
        self._best = -math.inf
        self._announced = False
        self._flushed = 0.0
        self._epoch_began = time.monotonic()
        self._untold: list[ev.Event] = []
        self._stops: list[cmd.Command] = []
        self._commands: RecordFollower[cmd.Command] = RecordFollower(run.commands, cmd.decoder)
        self._steps = StepBuffer(run.steps, ATTEMPT)
        self._lock = RunLock(run.lock)
        self._lock.acquire()
        me = processes.mark(os.getpid())
        self._attempt = Attempt(
            number=ATTEMPT, started=time.time(), supervisor=me, engine=me, boot_id=boot_id(),
            host=platform.node(), versions={"python": platform.python_version()}, command=[sys.executable, *sys.argv],
        )  # fmt: skip
        run.write_attempt(self._attempt)
        self._events = ev.EventWriter(run.events, ATTEMPT)
        self._untold.append(ev.Phase(phase="training"))
        self._flush()
        self._losses = LossWatch()
        self._watchdog = Watchdog(run, ATTEMPT, least_silence=LEAST_SILENCE)
        self._watchdog.start()

    def log(self, step: float | None, epoch: float | None, values: Mapping[str, float]) -> None:
        newest = self._steps.newest_step
        following = 0.0 if newest is None else newest + 1
        place = following if step is None else float(step)
        self._steps.add(place, epoch, values)
        self._note_losses(place, values)
        self.look()

    def look(self) -> None:
        """When it is time: write what was gathered, hear what was asked for."""
        if time.monotonic() - self._flushed < FLUSH_SECONDS:
            return
        self._flushed = time.monotonic()
        self._hear()
        self._flush()

    def end_epoch(self, number: int, score: float | None, values: Mapping[str, float]) -> None:
        newest = self._steps.newest_step
        step = number if newest is None else int(newest) + 1
        if not self._announced:
            self._announce(number, step, values, scored=score is not None)
        self._note_losses(step, values)
        train, validation = split_values(values)
        train, bad_train = ev.finite(train, "train.")
        validation, bad_validation = ev.finite(validation, "validation.")
        marks, bad_mark = ev.finite({"score": score})
        mark = marks["score"]
        best = mark is not None and mark > self._best
        if mark is not None:
            self._best = max(self._best, mark)
        lr = values.get("lr", 0.0)
        self._untold.append(
            ev.Epoch(
                epoch=number, step=step, stage="", train=train, validation=validation, score=mark,
                lr=lr if math.isfinite(lr) else 0.0, best=best, weights={},
                seconds=time.monotonic() - self._epoch_began, nonfinite=[*bad_train, *bad_validation, *bad_mark],
            )
        )  # fmt: skip
        self._epoch_began = time.monotonic()
        self._flush()

    def end(self, reason: ev.EndReason, detail: str) -> None:
        """Write what is left and how it ended, and let go of the lock whatever comes."""
        step = int(self._steps.newest_step or 0)
        self._untold += [ev.CommandAnswer(command=order, state="applied", step=step) for order in self._stops]
        self._untold.append(ev.Ended(reason=reason, step=step, detail=detail))
        ended = End(reason=reason, time=time.time(), exit_code=EXIT_CODES[reason], last_step=step, error=detail)
        try:
            self._flush()
            self._attempt.ended = ended
            self._run.write_attempt(self._attempt)
        finally:
            self._watchdog.stop()  # when it has heard the last alert
            self._steps.close()
            self._events.close()
            self._lock.release()
        if reason == "failed":
            notify.post(self._run.info, reason, "error", f"{reason}: {describe_end(ended)}", step)

    def _note_losses(self, step: float, values: Mapping[str, float]) -> None:
        if (alert := self._losses.look(int(step), values)) is not None:
            self._untold.append(alert)

    def _announce(self, epoch: int, step: int, values: Mapping[str, float], *, scored: bool) -> None:
        """Say what the table will look like: its columns are known with its first row."""
        per_epoch = max(1, round(step / max(1, epoch)))
        started = ev.RunStarted(
            project=self._project, device=platform.node(), epochs=self._total_epochs, steps_per_epoch=per_epoch,
            columns=table_columns(values, score=scored), stages=[],
        )  # fmt: skip
        self._untold += [started, ev.Phase(phase="training")]
        self._announced = True

    def _flush(self) -> None:
        try:
            self._steps.flush()
        finally:
            if len(self._steps) > MOST_ROWS:
                self._steps.forget()
        while self._untold:
            self._events.write(self._untold[0])
            del self._untold[0]

    def _hear(self) -> None:
        """A script can be asked to stop, and does so when it looks; nothing else can be asked of it."""
        for command in self._commands.poll():
            stop = isinstance(command, cmd.Stop)
            self.stop_requested |= stop
            self._stops += [command] * stop
            reason = "" if stop else "a script with a Reporter supports only stop"
            step = int(self._steps.newest_step or 0)
            self._untold.append(
                ev.CommandAnswer(command=command, state="seen" if stop else "refused", step=step, reason=reason)
            )
