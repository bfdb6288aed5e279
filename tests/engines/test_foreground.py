"""A training in the foreground: it outlives its terminal, and ctrl+c saves and stops it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.state import RunReader
from tests.engines.conftest import PATIENCE, alive, end_of, engine_of, wait_for
from tests.support.example_project import ExampleProject


class Foreground:
    """`python -m engines.train` on the example, with a pipe for a terminal."""

    def __init__(self, example: ExampleProject, folder: Path) -> None:
        self.run = RunDirectory(folder)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "engines.train", "--config", str(example.config), "--run-dir", str(folder),
             "--set", "training.epochs=100000", "--set", "training.patience=100000", "--set", "launch.threads=1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=example.env,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"run {folder}\n".encode()


@pytest.fixture
def foreground(example: ExampleProject, tmp_path: Path) -> Iterator[Foreground]:
    """A training in the foreground; the run is killed at the end of the test where it still lives."""
    made = Foreground(example, tmp_path / "run")
    yield made
    if (holder := lock_holder(made.run.lock)) is not None:
        os.kill(holder, signal.SIGQUIT)
    made.process.kill()
    made.process.communicate()


@pytest.mark.behaviour("engine-session-own-terminal")
def test_the_foreground_engine_survives_its_terminal(foreground: Foreground) -> None:
    """Killed with SIGKILL: the run goes on without it."""
    engine = engine_of(foreground.run)
    foreground.process.kill()
    foreground.process.wait()
    reader = RunReader(foreground.run)
    wait_for("an epoch after the foreground is gone", lambda: reader.poll() and len(reader.history.epochs) >= 2)
    assert alive(engine)
    launch.send(foreground.run, cmd.Stop(attempt=1))
    assert end_of(foreground.run)[0] == "stopped"


@pytest.mark.behaviour("stop-saves-stops-pressed")
def test_ctrl_c_in_the_foreground_saves_and_stops(foreground: Foreground) -> None:
    reader = RunReader(foreground.run)
    wait_for("the training", lambda: reader.status().state == "running")
    foreground.process.send_signal(signal.SIGINT)
    output, errors = foreground.process.communicate(timeout=PATIENCE)
    assert foreground.process.returncode == 130
    assert end_of(foreground.run)[0] == "stopped"
    assert foreground.run.last.is_file()
    assert foreground.run.stdout.read_bytes() == output
    assert b"Traceback" not in errors


def test_the_foreground_ends_when_the_run_is_lost(foreground: Foreground) -> None:
    engine_of(foreground.run)
    supervisor = lock_holder(foreground.run.lock)
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    _, errors = foreground.process.communicate(timeout=PATIENCE)
    assert foreground.process.returncode == 1
    assert b"no engine and no end recorded" in errors
