"""Runs of the example project for the engine's tests."""

from __future__ import annotations

import importlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
import torch

from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.resumption import Resumption
from engines.runs.state import RunReader
from engines.training import checkpoint
from tests.support import here
from tests.support.example_project import ExampleProject

PATIENCE = 120.0


def wait_for(what: str, condition: Callable[[], Any]) -> Any:
    """Poll until `condition` is true and give its value; fails with `what` after a generous time."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {PATIENCE:.0f} s in vain for {what}")


class Killed(BaseException):
    """Ends an attempt in this process as SIGKILL would: nobody writes anything down any more."""


class LiveRun:
    """A run of the example project that a test starts, steers, kills and resumes."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self.reader = RunReader(run)

    def start(self) -> int:
        return launch.start(self.run)

    def resume(self, *settings: str) -> int:
        changes, _ = launch.prepare_resume(self.run, settings)
        return launch.start(self.run, changes)

    def here(self) -> str:
        """Carry out an attempt in this process, where its being a process is not what is tested; the end's reason."""
        return self._ended(here.start(self.run))

    def _ended(self, number: int) -> str:
        ended = self.run.attempt(number).ended
        assert ended is not None
        return ended.reason

    def resume_here(self, *settings: str) -> str:
        changes, _ = launch.prepare_resume(self.run, settings)
        return self._ended(here.start(self.run, changes))

    def killed_here(self, batches: int, source: Any = None, *, resume: Resumption | None = None) -> None:
        """An attempt in this process, ended like by SIGKILL when it asks for more training batches than these.

        `source` is the class that makes them, the example's own by default.
        """
        source = source or importlib.import_module("spiral.project").Points
        gathered, batch = [0], source.batch

        def counted(self: Any, indices: Any, rng: Any, ctx: Any) -> Any:
            gathered[0] += rng is not None
            if gathered[0] > batches:
                raise Killed
            return batch(self, indices, rng, ctx)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(source, "batch", counted)
            with pytest.raises(Killed):
                here.start(self.run, resume)

    def send(self, command: cmd.Command) -> None:
        launch.send(self.run, command)

    def wait_state(self, *states: str) -> None:
        wait_for(f"{self.run.path.name} to be {' or '.join(states)}", lambda: self.reader.status().state in states)

    def wait_answer(self, command: cmd.Command, *states: str) -> Any:
        def answered() -> Any:
            self.reader.poll()
            answer = self.reader.history.answer(command.id, command.attempt)
            return answer if answer and answer.state in states else None

        return wait_for(f"an answer to {command}", answered)

    def wait_end(self) -> str:
        """Until the attempt is over and nothing holds the lock; the end's reason."""
        wait_for("the lock to be free", lambda: lock_holder(self.run.lock) is None)
        attempt = self.run.newest_attempt()
        assert attempt is not None
        assert attempt.ended is not None, self.log()
        return attempt.ended.reason

    def kill(self, which: str) -> None:
        """SIGKILL the engine or the supervisor and wait until both are gone."""
        attempt = self.run.newest_attempt()
        assert attempt is not None
        assert attempt.engine is not None
        pids = [attempt.engine.pid, attempt.supervisor.pid]
        os.kill(attempt.engine.pid if which == "engine" else attempt.supervisor.pid, signal.SIGKILL)
        wait_for("both processes to be gone", lambda: not any(alive(pid) for pid in pids))
        wait_for("the lock to be free", lambda: lock_holder(self.run.lock) is None)

    def log(self) -> str:
        return "".join(log.read_text() for log in (self.run.stdout, self.run.supervisor_log) if log.exists())


def alive(pid: int) -> bool:
    """Whether it still does anything: in a container nobody may reap what lost its parent."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> ExampleProject:
    return ExampleProject(tmp_path_factory.mktemp("example"))


def prepare_example(example: ExampleProject, patch: pytest.MonkeyPatch, folder: Path, *settings: str) -> RunDirectory:
    """A run directory for the example under `folder`, with the example installed for this process and its children."""
    patch.setenv("PYTHONPATH", example.path)
    patch.setenv("COCKPIT_RUNS", str(folder / "runs"))
    patch.syspath_prepend(str(example.folder))
    return launch.prepare_training(example.config, ["launch.threads=1", *settings])


@pytest.fixture
def new_run(
    example: ExampleProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., LiveRun]]:
    """Makes runs of the example (not yet started), and ends what a failing test leaves alive."""
    made: list[LiveRun] = []

    def make(*settings: str) -> LiveRun:
        made.append(LiveRun(prepare_example(example, monkeypatch, tmp_path, *settings)))
        return made[-1]

    yield make
    for live in made:
        if (holder := lock_holder(live.run.lock)) is not None:
            os.kill(holder, signal.SIGQUIT)


def tensors(path: Path) -> dict[str, torch.Tensor]:
    """Every tensor of a checkpoint by its place in it, random state included."""
    found: dict[str, torch.Tensor] = {}

    def walk(value: Any, place: str) -> None:
        if isinstance(value, torch.Tensor):
            found[place] = value
        elif isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, f"{place}/{key}")
        elif isinstance(value, list | tuple):
            for index, inner in enumerate(value):
                walk(inner, f"{place}/{index}")

    walk(checkpoint.load(path), "")
    return found


def effective_table(run: RunDirectory) -> list[dict[str, Any]]:
    """The epochs in force straight from the event log: each one's last record, without time, attempt and rates."""
    rows: dict[int, dict[str, Any]] = {}
    for line in run.events.read_bytes().splitlines():
        event = msgspec.json.decode(line) if line else {}
        if event.get("type") == "epoch":
            rows[event["epoch"]] = {k: v for k, v in event.items() if k not in ("time", "attempt", "seq", "seconds")}
    return [rows[epoch] for epoch in sorted(rows)]


def end_of(run: RunDirectory) -> tuple[str, str]:
    """State and detail once the supervisor is gone."""
    wait_for("the lock to be free", lambda: lock_holder(run.lock) is None)
    status = RunReader(run).status()
    return status.state, status.detail


def engine_of(run: RunDirectory) -> int:
    def started() -> int | None:
        attempt = run.newest_attempt()
        return attempt.engine.pid if attempt and attempt.engine else None

    pid: int = wait_for("the engine to start", started)
    return pid
