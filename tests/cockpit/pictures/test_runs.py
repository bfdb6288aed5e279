"""The list of runs, its dialogs, and what every screen has: help, and every action by its name."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cockpit.app import CockpitApp
from cockpit.core.runs import away
from cockpit.core.runs.fleet import Fleet
from cockpit.core.runs.summary import RunSummary
from cockpit.core.settings import SettingsFile
from cockpit.screens.queueing import LeaveQueueScreen
from tests.cockpit.conftest import NOW
from tests.cockpit.driving import shows, text, until
from tests.cockpit.looks import SIZES, Pictures
from tests.support.fake_run import FakeRun, epoch

Make = Callable[..., CockpitApp]
HOUR = 3600.0
WORDS = ("amber", "harbor", "birch", "lotus", "ember", "delta", "moss")

ENDED: tuple[tuple[str, float, int, int, float, dict[str, Any]], ...] = (
    ("controls-20261127-081400-birch", 12.4, 97, 150, 0.728, {"reason": "early-stopped"}),
    ("agent-20261126-101400-lotus", 34.4, 12, 40, 0.58, {"reason": "stopped"}),
    ("melee-20261127-161400-ember", 4.4, 1, 10, 0.2, {"reason": "failed", "exit_code": None, "signal": "SIGKILL"}),
    ("sim-20261125-101400-delta", 58.4, 2, 10, 0.55, {}),
)
"""Id, age in hours, epochs, epochs planned, best score, end."""


def make(folder: Path, name: str, age: float, epochs: int, planned: int, best: float, label: str = "") -> FakeRun:
    """A run of which every epoch was a little better than the one before, at $2.49 an hour."""
    fake = FakeRun(folder, name, label=label, created=NOW - age * HOUR)
    fake.run.write_info(msgspec.structs.replace(fake.run.info, project=name.split("-")[0]))
    fake.begin().started(epochs=planned)
    attempt = fake.run.attempt(1)
    attempt.started, attempt.usd_per_hour, attempt.device = NOW - age * HOUR, 2.49, "cuda:0"
    fake.run.write_attempt(attempt)
    scores = [best * (1 - math.exp(-4 * number / epochs)) / (1 - math.exp(-4)) for number in range(1, epochs + 1)]
    fake.say(*(epoch(number, best=True, score=score) for number, score in enumerate(scores, 1)))
    return fake


@pytest.fixture
def runs(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two that train, some that ended, a lost one, a broken one; last seen two hours and a quarter ago."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name, age, epochs, planned, best, end in ENDED:
        monkeypatch.setattr(time, "time", lambda age=age: NOW - (age - 1.1) * HOUR)
        fake = make(folder, name, age, epochs, planned, best)
        if end:
            fake.end(**end)
    (folder / "controls-20261120-101400-moss").mkdir()
    (folder / "controls-20261120-101400-moss" / "run.json").write_text("{garbage")
    monkeypatch.setattr(time, "time", lambda: NOW)
    live = make(folder, "melee-20261127-181400-harbor", 2.43, 3, 10, 4.31, "K=60")
    amber = make(folder, "controls-20261127-181400-amber", 2.43, 30, 150, 0.7, "look weight up")
    with amber.locked(), live.locked():
        fleet = Fleet(folder)
        fleet.poll()
        seen = [row for row in fleet.summaries() if not row.id.endswith("ember")]
        away.write(away.seen_path(folder), folder, seen, NOW - 8040)
        amber.say(*(epoch(number, best=True, score=0.7 + number / 1000) for number in range(31, 42)))
        yield


@SIZES
async def test_runs(
    pictures: Pictures,
    cockpit: Make,
    runs: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, int],
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = SettingsFile(Path("settings.json"))  # the help names it
    settings.change(runs_sort="-score")
    async with cockpit(settings=settings).run_test(size=size) as pilot:
        await until(pilot, partial(shows, pilot, *WORDS, "away (2 h 14 m)"))
        await pilot.press("down", "space", "space")
        await until(pilot, lambda: "2 marked" in text(pilot))
        await pictures.take(pilot, "away")
        for typed, shown in (
            (("d",), "delete for good"), (("escape", "e"), "notes"), (("escape", "o"), "youngest first"),
            (("escape", "question_mark"), "Open the run under the cursor"),
        ):  # fmt: skip
            await pilot.press(*typed)
            await until(pilot, partial(shows, pilot, shown))
            await pictures.take(pilot)
        await pilot.press("escape", "slash", *"/amber|lotus/")
        await until(pilot, lambda: "2 of 7 runs" in text(pilot))
        await pictures.take(pilot, "filtered")


@SIZES
async def test_no_runs(pictures: Pictures, cockpit: Make, size: tuple[int, int]) -> None:
    async with cockpit(folder=Path("/runs")).run_test(size=size) as pilot:
        await until(pilot, lambda: "No runs yet" in text(pilot) and "quit" in text(pilot))
        await pictures.take(pilot, "none")


@SIZES
async def test_leaving_the_queue(pictures: Pictures, cockpit: Make, size: tuple[int, int]) -> None:
    waiting = [
        RunSummary(path=Path(word), id=f"controls-20261127-201400-{word}", created=NOW, state="queued")
        for word in WORDS[:2]
    ]
    async with cockpit(folder=Path("/runs")).run_test(size=size) as pilot:
        await until(pilot, lambda: "No runs yet" in text(pilot) and "quit" in text(pilot))
        await pilot.app.push_screen(LeaveQueueScreen(waiting))
        await until(pilot, lambda: "take out" in text(pilot))
        await pictures.take(pilot)
