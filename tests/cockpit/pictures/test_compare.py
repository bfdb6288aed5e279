"""Runs side by side, and the choice of those that a run is compared with."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cockpit.app import CockpitApp
from engines.contract import events as ev
from tests.cockpit.conftest import NOW
from tests.cockpit.driving import keys, text, until
from tests.cockpit.looks import SIZES, Pictures
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


@SIZES
async def test_compare(pictures: Pictures, cockpit: Make, three: None, size: tuple[int, int]) -> None:
    async with cockpit().run_test(size=size) as pilot:
        await until(pilot, lambda: keys(pilot).get("open"))
        await pilot.press("enter")
        await until(pilot, lambda: keys(pilot).get("compare"))
        await pilot.press("c")
        await until(pilot, lambda: "K=10" in text(pilot) and "K=30" in text(pilot))
        await pilot.press("space")
        await pictures.take(pilot)
        await pilot.press("escape", "escape")
        await until(pilot, lambda: keys(pilot).get("open"))
        await pilot.press("asterisk")
        await until(pilot, lambda: keys(pilot).get("compare"))
        await pilot.press("c")
        shown = ("30/30", "by step", "quit", "train.loss", *(["model.K"] if size[0] > 100 else []))
        await until(pilot, lambda: all(word in text(pilot) for word in shown))
        await pictures.take(pilot)
