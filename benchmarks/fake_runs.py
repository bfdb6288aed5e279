"""Runs as an engine writes them, without one: for what only reads."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from engines.contract import events as ev
from engines.contract.rundir import Attempt, End, ProcessMark, RunDirectory, RunInfo
from engines.contract.spec import Column
from engines.contract.steps import StepWriter

COLUMNS = [Column("Ep", "epoch", "d"), Column("TrLoss", "train.loss"), Column("Score", "score")]
CONFIG = """\
project: controls
data:
  path: /data
model: {}
loss_weights:
  action: 1.0
cost:
  usd_per_hour: 2.5
"""
STEP_COLUMNS = ("time", "loss", "accuracy", "lr", "grad_norm")
EPOCHS = 1000
STEPS_PER_EPOCH = 1000
HOLDER = """
import sys
from pathlib import Path
from engines.basics.lock import RunLock
from engines.contract.rundir import RunDirectory
locks = [RunLock(RunDirectory(Path(path)).lock) for path in sys.argv[1:]]
print(all([lock.acquire() for lock in locks]), flush=True)
sys.stdin.read()
"""


class WrittenRun:
    """A training that began `age` seconds ago, at $2.50 an hour."""

    def __init__(self, folder: Path, name: str, age: float = 0.0) -> None:
        self.run = RunDirectory(folder / name)
        self.run.make()
        self.run.config.write_text(CONFIG)
        self.began = time.time() - age
        self.run.write_info(RunInfo(id=name, project="controls", kind="training", created=self.began))
        self._attempt = Attempt(
            number=1, started=self.began, supervisor=ProcessMark(1, 0.0), device="cpu", usd_per_hour=2.5
        )
        self.run.write_attempt(self._attempt)
        self._events = ev.EventWriter(self.run.events, 1)
        self._steps = StepWriter(self.run.steps, STEP_COLUMNS)
        stage = ev.StageInfo("train", 1, EPOCHS)
        self.say(
            ev.RunStarted(
                project="controls", device="cpu", epochs=EPOCHS, steps_per_epoch=STEPS_PER_EPOCH, columns=COLUMNS,
                stages=[stage], patience=EPOCHS,
            ),
            ev.Phase(phase="training", step=0),
        )  # fmt: skip

    def say(self, *events: ev.Event) -> None:
        for event in events:
            self._events.write(event)

    def log_steps(self, start: int, end: int) -> None:
        """Steps `start` to `end`, four metrics each, in one write."""
        step = np.arange(start, end, dtype=np.float64)
        slow = 1 + step / 1e5
        columns = (
            step, np.ones_like(step), self.began + step * 1e-3, 2 / slow, 1 - 1 / slow, np.full_like(step, 1e-3),
            1 + 0.1 * np.sin(step),
        )  # fmt: skip
        self._steps.append(np.stack(columns, axis=1))

    def end_epoch(self, number: int, loss: float) -> None:
        self.say(
            ev.Epoch(
                epoch=number, stage="train", step=number * STEPS_PER_EPOCH, train={"loss": loss}, validation={},
                score=number / EPOCHS, lr=1e-3, best=True, weights={"action": 1.0}, seconds=1.0,
            )
        )  # fmt: skip

    def finish(self, step: int) -> None:
        self._attempt.ended = End(reason="finished", time=time.time(), exit_code=0, last_step=step)
        self.run.write_attempt(self._attempt)


def hold(*runs: WrittenRun) -> subprocess.Popen[str]:
    """A process that holds the runs' locks, as supervisors do, until its input is closed."""
    command = [sys.executable, "-c", HOLDER, *(str(run.run.path) for run in runs)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    return holder
