"""Stopping a real engine from the cockpit's screen: any number of presses harms nothing and leaves nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.core.runs.remains import processes_of, what_remains
from cockpit.core.settings import SettingsFile
from cockpit.screens import confirm
from cockpit.screens.confirm import StopHarder
from cockpit.screens.run import RunScreen
from engines.basics.jsonl import RecordFollower
from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.state import RunReader, Status
from engines.runs.store import create_run
from engines.training import checkpoint
from tests.cockpit.driving import keys, text, until
from tests.engines.conftest import LiveRun, prepare_example
from tests.support.example_project import ExampleProject
from tests.support.reporting_script import reporting_script


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveRun]:
    example = ExampleProject(tmp_path / "example")
    run = LiveRun(prepare_example(example, monkeypatch, tmp_path, "training.epochs=100000"))
    run.start()
    yield run
    if (holder := lock_holder(run.run.lock)) is not None:
        os.kill(holder, signal.SIGQUIT)


Check = Callable[[LiveRun], None]


async def stop_with(live: LiveRun, settings: SettingsFile, *presses: str) -> None:
    """Press keys on the run's screen until it has ended and the screen has said what remains."""
    attempt = live.run.newest_attempt()
    assert attempt is not None
    app = CockpitApp(folder=live.run.path.parent, open_run=live.run, settings=settings)
    async with app.run_test(size=(110, 30), notifications=True) as pilot:
        await until(pilot, lambda: "running" in text(pilot) and keys(pilot).get("stop"))
        assert len(processes_of(attempt.supervisor)) >= 2
        await pilot.press(*presses)
        await until(pilot, lambda: "no processes left" in text(pilot))
    assert processes_of(attempt.supervisor) == []
    assert live.wait_end() == "stopped"


@pytest.mark.behaviour("stop-saves-stops-pressed")
async def test_five_fast_presses_harm_no_checkpoint_and_leave_nothing(live: LiveRun, settings: SettingsFile) -> None:
    save = cmd.SaveCheckpoint(attempt=1)
    live.send(save)
    live.wait_answer(save, "applied")
    await stop_with(live, settings, "s", "s", "s", "s", "s")
    content = checkpoint.load(live.run.last)
    assert content["state"]["step"] > 0
    assert [path for path in live.run.checkpoints.iterdir() if path.suffix != ".pt"] == []


@pytest.mark.behaviour("stop-heard-every-phase")
async def test_a_stop_is_obeyed_in_a_pause(live: LiveRun, settings: SettingsFile) -> None:
    pause = cmd.Pause(attempt=1)
    live.send(pause)
    live.wait_state("paused")
    attempt = live.run.newest_attempt()
    assert attempt is not None
    app = CockpitApp(folder=live.run.path.parent, open_run=live.run, settings=settings)
    async with app.run_test(size=(110, 30), notifications=True) as pilot:
        await until(pilot, lambda: "paused" in text(pilot) and keys(pilot).get("stop"))
        await pilot.press("s")
        await until(pilot, lambda: "no processes left" in text(pilot))
    assert live.wait_end() == "stopped"
    assert checkpoint.load(live.run.last)["state"]["step"] >= 0
    assert what_remains(live.run).endswith("no processes left.")


DEAF = """
import signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
if sys.argv[1:] != ["worker"]:
    subprocess.Popen([sys.executable, __file__, "worker"])
while True: time.sleep(0.05)
"""
"""An engine, and a worker of its own, that hear neither commands nor a polite signal."""


@pytest.fixture
def deaf(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunDirectory]:
    """A run of such an engine; a process of the same kind that is not of the run outlives it."""
    (script := tmp_path / "deaf_engine.py").write_text(DEAF)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(confirm, "TICK_SECONDS", 0.1)
    with subprocess.Popen([sys.executable, str(script), "worker"], start_new_session=True) as bystander:
        run = create_run("toy", "{}", kind="training", engine="deaf_engine", title="")
        launch.start(run)
        yield run
        still_there = bystander.poll() is None
        bystander.kill()
        if (holder := lock_holder(run.lock)) is not None:
            os.kill(holder, signal.SIGQUIT)
    assert still_there


@pytest.mark.behaviour("stop-saves-stops-pressed")
async def test_an_engine_that_is_deaf_to_sigterm_is_killed_when_the_countdown_ends(
    deaf: RunDirectory, settings: SettingsFile
) -> None:
    """The whole ladder by keys: stop, the question, SIGTERM, the countdown, SIGKILL, and what remains."""
    attempt = deaf.newest_attempt()
    assert attempt is not None
    app = CockpitApp(folder=deaf.path.parent, open_run=deaf, settings=settings)
    async with app.run_test(size=(110, 30), notifications=True) as pilot:
        await until(pilot, lambda: len(processes_of(attempt.supervisor)) == 3 and keys(pilot).get("stop"))
        await pilot.press("s", "s")
        await until(pilot, lambda: isinstance(app.screen, StopHarder))
        await pilot.press("t", "t")
        await until(pilot, lambda: 0 < seconds_left(pilot) < confirm.GRACE_SECONDS - 3)
        assert len(processes_of(attempt.supervisor)) == 3  # none of them has listened
        await until(pilot, lambda: "no processes left" in text(pilot))
        assert isinstance(app.screen, RunScreen)  # the question has answered itself
    assert processes_of(attempt.supervisor) == []
    ended = deaf.attempt(1).ended
    assert ended is not None
    assert (ended.reason, ended.signal) == ("stopped", "SIGKILL")
    assert [type(order) for order in RecordFollower(deaf.commands, cmd.decoder).poll()] == [cmd.Stop]


def seconds_left(pilot: Pilot[None]) -> int:
    """Of the countdown; 0 once it is over."""
    counted = re.search(r"killed in (\d+) s", text(pilot))
    return int(counted[1]) if counted else 0


@pytest.mark.behaviour("script-somebody-else-s")
async def test_a_script_that_reports_itself_and_is_ended_by_signal_is_stopped_not_lost(
    folder: Path, tmp_path: Path, settings: SettingsFile
) -> None:
    with reporting_script(tmp_path) as (process, run):
        app = CockpitApp(folder=folder, open_run=run, settings=settings)
        async with app.run_test(size=(110, 30), notifications=True) as pilot:
            await until(pilot, lambda: "running" in text(pilot) and keys(pilot).get("stop"))
            usable = keys(pilot)
            assert [name for name in ("pause", "checkpoint", "resume", "fork") if usable.get(name)] == []
            await pilot.press("s", "s")
            await until(pilot, lambda: isinstance(app.screen, StopHarder))
            await pilot.press("t")
            await until(pilot, lambda: "stopped." in text(pilot))
            await until(pilot, lambda: "stopped" in text(pilot) and "lost" not in text(pilot))
        assert process.wait() == -signal.SIGTERM
    assert RunReader(run).status() == Status("stopped", "ended by SIGTERM on request")
