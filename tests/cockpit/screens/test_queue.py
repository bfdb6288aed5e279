"""The queue in the list of runs, with real supervisors: its order is shown, changed and cancelled by keys; a sweep."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from textual.pilot import Pilot

from cockpit import app
from cockpit.app import CockpitApp
from cockpit.cli import main
from cockpit.core.text import run_word
from cockpit.screens.compare import CompareScreen
from cockpit.screens.run import RunScreen
from cockpit.screens.runs import RunsScreen
from engines.basics.lock import lock_holder
from engines.contract import events as ev
from engines.contract.rundir import RunDirectory
from engines.host import queue
from engines.runs import launch
from engines.runs.state import RunReader
from engines.runs.store import create_run, list_runs
from tests.cockpit.driving import keys, text, until
from tests.support.fake_run import FakeRun

Make = Callable[..., CockpitApp]
CONFIG = "project: controls\ndata: {path: recordings}\nlaunch: {device: cpu}\n"


@pytest.fixture
def busy(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunDirectory]:
    """A run that holds the CPU until the end of the test."""
    (tmp_path / "sleeping_engine.py").write_text("import time\nwhile True: time.sleep(0.05)\n")
    (tmp_path / "a.yaml").write_text(CONFIG)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("COCKPIT_QUEUE", str(tmp_path / "queues"))
    monkeypatch.chdir(tmp_path)
    run = create_run("toy", "launch: {device: cpu}", kind="training", engine="sleeping_engine", title="")
    launch.start(run)
    yield run
    for made in reversed(list_runs(folder)):
        if (holder := lock_holder(made.lock)) is not None:
            os.kill(holder, signal.SIGQUIT)


def sweep(*values: int | str) -> list[RunDirectory]:
    """Queues a run for each seed, in their order; words are further options."""
    before = {run.path for run in list_runs()}
    seeds = [str(value) for value in values if isinstance(value, int)]
    options = [value for value in values if isinstance(value, str)]
    assert main(["train", "a.yaml", "--sweep", f"training.seed={','.join(seeds)}", *options]) == 0
    made = {run.info.label: run for run in list_runs() if run.path not in before}
    return [made[f"seed={seed}"] for seed in seeds]


def waiting() -> list[Path]:
    return [place.run for place in queue.places() if place.number]


def listed(pilot: Pilot[None], runs: list[RunDirectory]) -> list[tuple[str, int]]:
    """What each waiting run on the screen says of its place, and which of `runs` it is, as listed."""
    lines = [line.partition("○ queued ")[2] for line in text(pilot).splitlines() if "○ queued" in line]
    names = [run_word(run.path.name) for run in runs]
    return [(line.split()[0], next(at for at, name in enumerate(names) if name in line)) for line in lines]


@pytest.mark.behaviour("queue-asks")
async def test_the_queue_is_shown_in_its_order_changed_and_cancelled(cockpit: Make, busy: RunDirectory) -> None:
    runs = sweep(1, 2, 3)
    async with cockpit().run_test(size=(120, 24), notifications=True) as pilot:

        async def shows(*places: int) -> None:
            expected = list(zip(("1st", "2nd", "3rd"), places, strict=False))
            await until(pilot, lambda: listed(pilot, runs) == expected)
            await until(pilot, lambda: waiting() == [runs[place].path for place in places])

        await shows(0, 1, 2)
        above, below = (text(pilot).index(f"{run_word(run.path.name)} ") for run in (busy, runs[0]))
        assert above < below  # what runs is above
        await pilot.press("home", "down", "down", "down")
        await until(pilot, lambda: "3rd for cpu, after" in text(pilot))
        assert "K earlier  J later  x cancel" in text(pilot)
        await pilot.press("K", "K")
        await shows(2, 0, 1)
        assert not keys(pilot)["earlier"]  # it is the first
        assert keys(pilot)["later"]
        await pilot.press("shift+end")
        await shows(0, 1, 2)
        await pilot.press("shift+home")
        await shows(2, 0, 1)
        await pilot.press("ctrl+p", *"queue: ")
        await until(pilot, lambda: all(f"queue: {word}" in text(pilot) for word in ("later", "last", "cancel")))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen))
        await pilot.press("J")
        await shows(0, 2, 1)
        await pilot.press("home", "space", "space", "down", "space")  # what runs, and two that wait
        await until(pilot, lambda: "3 marked" in text(pilot))
        await pilot.press("x")
        await until(pilot, lambda: "Take these 2 runs out of the queue?" in text(pilot))
        await pilot.press("enter")  # the safe answer
        await shows(0, 2, 1)
        await pilot.press("x", "y")
        await until(pilot, lambda: "2 runs left the queue; resume puts one back at the end" in text(pilot))
        await shows(2)
        await pilot.press("escape", "home")
        await until(pilot, lambda: not keys(pilot)["cancel"])  # what runs is in no queue
    assert [RunReader(run).status().state for run in (busy, *runs)] == ["starting", "stopped", "stopped", "queued"]


async def test_a_sweep_is_compared_from_the_start_and_runs_appear_as_they_begin(
    cockpit: Make, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[list[Path]] = []

    def run(demo: None, *, compare: Sequence[RunDirectory], **given: object) -> int:
        opened.append([run.path for run in compare])
        return 0

    monkeypatch.setattr(app, "run", run)
    monkeypatch.setattr(launch, "start", lambda run: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(CONFIG)
    runs = sweep(10, 60)
    command = f"cockpit compare {runs[0].path.name} {runs[1].path.name} --open"
    assert f"`{command}` shows them side by side" in capsys.readouterr().err
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    assert main(command.split()[1:]) == 0
    more = sweep(3, 4, "--detach")
    assert opened == [[run.path for run in runs]]
    more += sweep(5)
    assert opened[1:] == [[more[2].path]]

    fakes = [FakeRun(folder, run.path.name) for run in runs]
    for fake, seed in zip(fakes, (10, 60), strict=True):
        fake.run.write_info(msgspec.structs.replace(fake.run.info, label=f"seed={seed}"))
        fake.begin(queued=True).say(ev.Phase(phase="queued", detail="1st for cpu"))
    with fakes[0].locked(), fakes[1].locked():
        async with cockpit(compare=runs).run_test(size=(110, 30)) as pilot:
            await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen) and "seed=60" in text(pilot))
            await until(pilot, lambda: text(pilot).count("○ queued") == 2)
            fakes[0].run.write_attempt(msgspec.structs.replace(fakes[0].run.attempt(1), queued=False))
            fakes[0].started().epochs(1, 2, best=2)
            await until(pilot, lambda: text(pilot).count("○ queued") == 1 and "● running" in text(pilot))
            await until(pilot, lambda: "2/4" in text(pilot) and "0.200" in text(pilot))
            await pilot.press("2")
            await until(pilot, lambda: "validation.action_f1" in text(pilot))
    async with cockpit(compare=more[2:]).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
    async with cockpit(compare=[*runs * 4, more[0]]).run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "3 runs · 3 drawn" in text(pilot))  # each once
