"""A run directory written the way a supervisor and its engine would write it, without either of them."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from engines.basics.errors import DataError
from engines.basics.jsonl import RecordFollower
from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.config import check_config
from engines.contract.rundir import Attempt, End, ProcessMark, RunDirectory, RunInfo
from engines.contract.spec import Column
from engines.host.identity import seal
from engines.supervisor.processes import mark

COLUMNS = [
    Column("Ep", "epoch", "d"),
    Column("TrLoss", "train.loss"),
    Column("Act", "train.action"),
    Column("VlF1", "validation.action_f1"),
    Column("Score", "score"),
    Column("LR", "lr", ".1e"),
]
CONFIG = """\
project: controls
data:
  path: /data
model: {}
loss_weights:
  action: 1.0
  look: 0.5
cost:
  usd_per_hour: 0.0
"""
STEPS_PER_EPOCH = 10

# Holds the lock as a supervisor does; on SIGQUIT it records the kill and leaves, as a supervisor does.
_HOLDER = """
import signal, sys, time
from pathlib import Path
from engines.basics.lock import RunLock
lock = RunLock(Path(sys.argv[2]))
assert lock.acquire()
def kill(number, frame):
    from engines.contract.rundir import End, RunDirectory
    run = RunDirectory(Path(sys.argv[1]))
    attempt = run.newest_attempt()
    attempt.ended = End(reason="stopped", time=time.time(), error="killed on request")
    run.write_attempt(attempt)
    sys.exit()
signal.signal(signal.SIGQUIT, kill)
print("held", flush=True)
sys.stdin.read()
"""


class FakeRun:
    """A run to be put into any state, one fact at a time."""

    def __init__(
        self,
        folder: Path,
        name: str = "controls-20261127-201400-amber",
        *,
        kind: Literal["training", "task"] = "training",
        label: str = "",
        project: str = "controls",
        created: float = 1_795_810_440.0,
    ) -> None:
        self.run = RunDirectory(folder / name)
        self.run.make()
        self.run.config.write_text(CONFIG)
        self.run.write_info(
            RunInfo(
                id=name,
                project=project,
                kind=kind,
                engine="engines.train",
                title="demo.yaml",
                label=label,
                created=created,
                seal=seal(name),
            )
        )
        self.attempt = 0
        self._writer: ev.EventWriter | None = None

    @property
    def id(self) -> str:
        return self.run.path.name

    def begin(self, *, queued: bool = False) -> FakeRun:
        """Begin an attempt; no engine speaks yet."""
        self.attempt += 1
        mark = ProcessMark(os.getpid(), 0.0)
        self.run.write_attempt(
            Attempt(number=self.attempt, started=time.time(), queued=queued, supervisor=mark, device="cpu")
        )
        self._writer = ev.EventWriter(self.run.events, self.attempt)
        return self

    def say(self, *events: ev.Event) -> FakeRun:
        assert self._writer is not None
        for event in events:
            self._writer.write(event)
        return self

    def started(self, resumed_step: int = 0, epochs: int = 4) -> FakeRun:
        """The engine has loaded and trains."""
        return self.say(
            ev.RunStarted(
                project="controls", device="cpu", epochs=epochs, steps_per_epoch=STEPS_PER_EPOCH, columns=COLUMNS,
                stages=[ev.StageInfo("train", 1, epochs)], patience=3, resumed_step=resumed_step,
            ),
            ev.Phase(phase="training", step=resumed_step),
        )  # fmt: skip

    def epochs(self, *numbers: int, best: int = 0, score: float | None = None) -> FakeRun:
        return self.say(*(epoch(number, best=number == best, score=score) for number in numbers))

    def end(
        self,
        reason: Literal["finished", "early-stopped", "stopped", "out-of-budget", "failed"],
        *,
        exit_code: int | None = 0,
        signal: str | None = None,
        error: str = "",
    ) -> FakeRun:
        attempt = self.run.attempt(self.attempt)
        attempt.ended = End(reason=reason, time=time.time(), exit_code=exit_code, signal=signal, error=error)
        self.run.write_attempt(attempt)
        return self

    @contextlib.contextmanager
    def locked(self) -> Iterator[int]:
        """Another process holds the lock, as the supervisor would; gives its id."""
        command = [sys.executable, "-c", _HOLDER, str(self.run.path), str(self.run.lock)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            assert lock_holder(self.run.lock) == holder.pid
            with contextlib.suppress(DataError):
                if (attempt := self.run.newest_attempt()) is not None:
                    attempt.supervisor = mark(holder.pid)
                    self.run.write_attempt(attempt)
            try:
                yield holder.pid
            finally:
                assert holder.stdin is not None
                holder.stdin.close()
                holder.wait()


def epoch(number: int, *, best: bool = False, score: float | None = None, loss: float | None = None) -> ev.Epoch:
    """A row whose numbers tell its epoch: loss 1/epoch, score epoch/10 unless given."""
    return ev.Epoch(
        epoch=number, step=number * STEPS_PER_EPOCH, stage="train",
        train={"loss": 1 / number if loss is None else loss, "action": 0.5}, validation={"action_f1": 0.25},
        score=number / 10 if score is None else score, lr=5e-4, best=best,
        weights={"action": 1.0, "look": 0.5}, seconds=1.5,
    )  # fmt: skip


class FakeEngine:
    """Hears the commands of a fake run and does with each what `react` says."""

    def __init__(self, fake: FakeRun, react: Callable[[cmd.Command], object]) -> None:
        self._follower: RecordFollower[cmd.Command] = RecordFollower(fake.run.commands, cmd.decoder)
        self._react = react
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self.heard: list[cmd.Command] = []

    def __enter__(self) -> FakeEngine:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._closing.set()
        self._thread.join()

    def _listen(self) -> None:
        while not self._closing.wait(0.01):
            for command in self._follower.poll():
                self.heard.append(command)
                self._react(command)


def write_checkpoint(path: Path, *, epoch: int, patience: int | None) -> None:
    """As torch writes one, without anything to train in it."""
    live = {"weights": {}, "lr_scale": 1.0, "epochs": 4, "patience": patience}
    state = {"step": epoch * STEPS_PER_EPOCH, "epoch": epoch, "step_in_epoch": 0, "live": live}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"format": 1, "state": state}, protocol=2))


def stopped_early(fake: FakeRun) -> FakeRun:
    """Two of four epochs done, with the patience edited live after the first; best, last and both epochs are kept."""
    tree = {"project": "controls", "data": {"path": "/data"}}
    fake.run.config.write_text(check_config(tree, "config", {}, ["training.epochs=4"]).dump())
    fake.begin().started()
    edit = cmd.SetPatience(attempt=1, patience=7)
    for number in (1, 2):
        fake.epochs(number, best=1)
        names = ["last.pt", f"epoch_{number:03d}.pt", *(["best.pt"] if number == 1 else [])]
        for name in names:
            write_checkpoint(fake.run.checkpoints / name, epoch=number, patience=7 if number == 2 else None)
        step = number * STEPS_PER_EPOCH
        fake.say(ev.Checkpoint(step=step, epoch=number, files=names, size=2_000_000, seconds=0.1))
        if number == 1:
            fake.say(ev.CommandAnswer(command=edit, state="applied", step=step, epoch=1))
    return fake.end("stopped")
