"""Pictures of the list of runs and its dialogs. After a change that is meant: `--snapshot-update`, and look at them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.core import away
from cockpit.core.fleet import Fleet
from cockpit.core.settings import SettingsFile
from tests.cockpit.conftest import NOW
from tests.cockpit.driving import settled, text, until
from tests.cockpit.looks import LOOKS, SIZES
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


@LOOKS
@SIZES
def test_runs(snap_compare: Any, cockpit: Make, runs: None, look: dict[str, Any], size: tuple[int, int]) -> None:
    async def ready(pilot: Pilot[None]) -> None:
        await settled(pilot, *WORDS, "away (2 h 14 m)")
        await pilot.press("down", "space", "space")
        await settled(pilot, *WORDS, "2 marked", "leave")

    assert snap_compare(cockpit(**look), terminal_size=size, run_before=ready)


@pytest.mark.parametrize(
    ("name", "typed", "shown"),
    [
        ("delete", ("end", "up", "up", "space", "space", "d"), "delete for good"),
        ("label", ("e",), "notes"),
        ("order", ("o",), "the youngest first"),
        ("filter", ("slash", *"/amber|lotus/"), "2 of 7 runs"),
    ],
    ids=["delete", "label", "order", "filter"],
)
def test_dialogs(
    snap_compare: Any, cockpit: Make, settings: SettingsFile, runs: None, name: str, typed: tuple[str, ...], shown: str
) -> None:
    settings.change(runs_sort="-score")

    async def ready(pilot: Pilot[None]) -> None:
        await settled(pilot, *WORDS, "away (2 h 14 m)")
        await pilot.press("escape", *typed)
        await until(pilot, lambda: shown in text(pilot))

    assert snap_compare(cockpit(), terminal_size=(80, 24), run_before=ready)


def test_no_runs(snap_compare: Any, cockpit: Make) -> None:
    async def ready(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "No runs yet" in text(pilot) and "leave" in text(pilot))

    app = cockpit(folder=Path("/runs"))
    assert snap_compare(app, terminal_size=(80, 24), run_before=ready)
