"""Runs side by side, and the choice of those that a run is compared with."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cockpit.app import CockpitApp
from cockpit.core.runs import baseline
from engines.contract import events as ev
from tests.cockpit.conftest import NOW
from tests.cockpit.driving import keys, text, until
from tests.cockpit.looks import SIZES, Pictures
from tests.support.fake_run import CONFIG, FakeRun

Make = Callable[..., CockpitApp]
EPOCHS = 30


@pytest.fixture
def five(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two settings with two seeds each, and one with a single seed, which is the baseline."""
    runs = (("amber", 10, 1), ("birch", 10, 2), ("cedar", 60, 1), ("delta", 60, 2), ("ember", 20, 1))
    for place, (word, k, seed) in enumerate(runs):
        monkeypatch.setattr(time, "time", lambda place=place: NOW - 7200 - place * 3600)
        name, label = f"controls-20261127-20140{place}-{word}", f"K={k} seed={seed}"
        fake = FakeRun(folder, name, label=label, created=NOW - 9000 - place).begin()
        fake.started(epochs=EPOCHS)
        fake.run.config.write_text(CONFIG.replace("model: {}", f"model:\n  K: {k}") + f"training:\n  seed: {seed}\n")
        fake.say(*(row(number, k, seed) for number in range(1, EPOCHS + 1))).end("finished")
    baseline.pin(folder, fake.run)


def row(number: int, k: int, seed: int) -> ev.Epoch:
    loss = 0.3 + math.exp(-number * (10 + k) / 300) + seed * 0.04
    return ev.Epoch(
        epoch=number, step=number * 10, stage="main", score=1 - loss, lr=1e-3, best=True, weights={}, seconds=1.0,
        train={"loss": loss}, validation={"loss": loss + 0.02 + k / 2000, "action_f1": 0.9 - loss / 2},
    )  # fmt: skip


@SIZES
async def test_compare(pictures: Pictures, cockpit: Make, five: None, size: tuple[int, int]) -> None:
    async with cockpit().run_test(size=size) as pilot:
        await until(pilot, lambda: keys(pilot).get("open"))
        await pilot.press("enter")
        await until(pilot, lambda: keys(pilot).get("compare"))
        await pilot.press("c")
        await until(pilot, lambda: "K=10" in text(pilot) and "K=60" in text(pilot))
        await pilot.press("space")
        await pictures.take(pilot)
        await pilot.press("escape", "escape")
        await until(pilot, lambda: keys(pilot).get("open"))
        await pilot.press("asterisk")
        await until(pilot, lambda: keys(pilot).get("compare"))
        await pilot.press("c")
        await until(pilot, lambda: "5 runs in 3 lines · 3 drawn" in text(pilot) and "pinned" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "· seed=2" in text(pilot))
        if size[0] > 100:
            await until(pilot, lambda: all(word in text(pilot) for word in ("by step", "train.loss", "model.K")))
        await pictures.take(pilot, "table")
        await pilot.press("o")
        await until(pilot, lambda: "Order by" in text(pilot) and "escape close" in text(pilot))
        await pictures.take(pilot)
        await pilot.press("escape")
        await pilot.press("2")
        await until(pilot, lambda: "by step" in text(pilot) and "train.loss" in text(pilot))
        await pictures.take(pilot, "charts")
