"""Stopping a real engine from the cockpit's screen: any number of presses harms nothing and leaves nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cockpit.app import CockpitApp
from cockpit.core.remains import processes_of, what_remains
from cockpit.core.settings import SettingsFile
from engines.contract import commands as cmd
from engines.contract.lock import lock_holder
from engines.training import checkpoint
from tests.cockpit.driving import keys, text, until
from tests.engines.conftest import LiveRun, prepare_example
from tests.support.example_project import ExampleProject


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
        await until(pilot, lambda: "nothing of it is left running" in text(pilot))
    assert processes_of(attempt.supervisor) == []
    assert live.wait_end() == "stopped"


async def test_five_fast_presses_harm_no_checkpoint_and_leave_nothing(live: LiveRun, settings: SettingsFile) -> None:
    save = cmd.SaveCheckpoint(attempt=1)
    live.send(save)
    live.wait_answer(save, "applied")
    await stop_with(live, settings, "s", "s", "s", "s", "s")
    content = checkpoint.load(live.run.last)
    assert content["state"]["step"] > 0
    assert [path for path in live.run.checkpoints.iterdir() if path.suffix != ".pt"] == []


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
        await until(pilot, lambda: "nothing of it is left running" in text(pilot))
    assert live.wait_end() == "stopped"
    assert checkpoint.load(live.run.last)["state"]["step"] >= 0
    assert what_remains(live.run).endswith("nothing of it is left running.")
