"""Pictures of weights, learning rate and end, and of the question how to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.screens import followed
from cockpit.screens.confirm import StopHarder
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.steps import StepWriter
from tests.cockpit.conftest import NOW
from tests.cockpit.driving import keys, settled, text, until
from tests.support.fake_run import FakeRun

Make = Callable[..., CockpitApp]
HEADS = {"action": 0.6, "look": 0.02, "hotbar": 0.05, "cursor": 0.02, "inventory": 0.03, "idle": 0.3}
CONFIG = """\
project: controls
data: {path: /data}
training: {lr: 0.0005, min_lr: 1.0e-6, warmup_epochs: 1, epochs: 12, patience: 3}
loss_weights: {action: 1.0, look: 0.5, hotbar: 0.3, cursor: 0.5, inventory: 0.3, idle: 0.3}
"""
SHOTS = pytest.mark.parametrize(
    ("look", "size"),
    [({"theme": "cockpit-dark"}, (80, 24)), ({"theme": "cockpit-light"}, (200, 50)), ({"ascii_only": True}, (80, 24))],
    ids=["dark-80x24", "light-200x50", "ascii-80x24"],
)


@pytest.fixture
def training(fake: FakeRun, monkeypatch: pytest.MonkeyPatch) -> FakeRun:
    """Three epochs of twelve; a weight was edited, the gradient measured."""
    monkeypatch.setattr(followed, "SHOW_SECONDS", 0.1)
    monkeypatch.setattr(time, "time", lambda: NOW)
    fake.run.config.write_text(CONFIG)
    fake.begin().started(epochs=12).epochs(1, 2, 3, best=3)
    writer = StepWriter(fake.run.steps, ["epoch", "time", "lr", "loss", *HEADS])
    losses = np.array(list(HEADS.values()))
    for step in range(35):
        falling = losses * (1 + np.exp(-step / 10) + 0.05 * np.sin(step * (1 + np.arange(6))))
        writer.append(np.array([[step, 1, 1 + step // 10, 1e9 + step, 5e-4 * min(1, (step + 1) / 10), 1.0, *falling]]))
    writer.close()
    edit = cmd.SetLossWeights(attempt=1, weights={"look": 0.6})
    norms: dict[str, float | None] = dict(zip(HEADS, (0.5, 0.1, 0.2, 0.05, 0.1, 0.4), strict=True))
    return fake.say(
        ev.CommandAnswer(command=edit, state="applied", step=17), ev.GradientNorms(step=26, norms=norms, parameters=100)
    )


@SHOTS
def test_weights(
    snap_compare: Any, cockpit: Make, training: FakeRun, look: dict[str, Any], size: tuple[int, int]
) -> None:
    async def ready(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: keys(pilot).get("weights"))
        await pilot.press("w")
        await settled(pilot, "look 0.6: applied at step 17", "raw loss")
        await pilot.press("down", "right", "right", "down", "x", "down", "down", "0", ".", "6", "down")
        await settled(pilot, "look 0.6", "2 changes")

    with training.locked():
        app = cockpit(open_run=training.run, **look)
        assert snap_compare(app, terminal_size=size, run_before=ready)


@SHOTS
def test_learning_rate_and_end(
    snap_compare: Any, cockpit: Make, training: FakeRun, look: dict[str, Any], size: tuple[int, int]
) -> None:
    async def ready(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: keys(pilot).get("rate"))
        await pilot.press("l")
        await settled(pilot, "Patience, epochs", "Nothing is changed")
        await pilot.press("0", ".", "5", "down", "right", "up")
        await settled(pilot, "multiplied by 0.5")

    with training.locked():
        app = cockpit(open_run=training.run, **look)
        assert snap_compare(app, terminal_size=size, run_before=ready)


@SHOTS
def test_the_question_how_to_stop(
    snap_compare: Any, cockpit: Make, training: FakeRun, look: dict[str, Any], size: tuple[int, int]
) -> None:
    async def ready(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: keys(pilot).get("weights"))
        await pilot.press("w")
        await settled(pilot, "look 0.6: applied at step 17", "raw loss")
        await pilot.app.push_screen(StopHarder("controls-20261127-201400-amber", lambda number: None))
        await until(pilot, lambda: "keep waiting" in text(pilot))

    with training.locked():
        app = cockpit(open_run=training.run, **look)
        assert snap_compare(app, terminal_size=size, run_before=ready)
