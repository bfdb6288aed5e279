"""Pictures of runs side by side, in every look."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from engines.contract import events as ev
from tests.cockpit.conftest import NOW
from tests.cockpit.driving import keys, settled, until
from tests.cockpit.looks import LOOKS, SIZES
from tests.support.fake_run import CONFIG, FakeRun

Make = Callable[..., CockpitApp]
EPOCHS = 30


@pytest.fixture
def three(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that differ in one setting, each a little better than the one before."""
    for place, (word, k) in enumerate((("amber", 10), ("birch", 30), ("cedar", 60))):
        monkeypatch.setattr(time, "time", lambda place=place: NOW - 7200 - place * 3600)
        fake = FakeRun(folder, f"controls-20261127-20140{place}-{word}", label=f"K={k}", created=NOW - 9000).begin()
        fake.started(epochs=EPOCHS)
        fake.run.config.write_text(CONFIG.replace("model: {}", f"model:\n  K: {k}"))
        fake.say(*(row(number, k) for number in range(1, EPOCHS + 1))).end("finished")


def row(number: int, k: int) -> ev.Epoch:
    loss = 0.3 + math.exp(-number * (10 + k) / 300)
    return ev.Epoch(
        epoch=number, step=number * 10, stage="main", score=1 - loss, lr=1e-3, best=True, weights={}, seconds=1.0,
        train={"loss": loss}, validation={"loss": loss + 0.02 + k / 2000, "action_f1": 0.9 - loss / 2},
    )  # fmt: skip


@LOOKS
@SIZES
def test_compare(snap_compare: Any, cockpit: Make, three: None, size: tuple[int, int], look: dict[str, Any]) -> None:
    async def ready(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: keys(pilot).get("open"))
        await pilot.press("asterisk")
        await until(pilot, lambda: keys(pilot).get("compare"))
        await pilot.press("c")
        await settled(pilot, "30/30", "by step", "leave", "train.loss", *(["model.K"] if size[0] > 100 else []))

    assert snap_compare(cockpit(**look), terminal_size=size, run_before=ready)
