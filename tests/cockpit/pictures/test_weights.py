"""Loss weights, their presets, learning rate and end of a run, and the question how to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from cockpit.app import CockpitApp
from cockpit.core.settings import SettingsFile
from cockpit.screens import followed
from cockpit.screens.confirm import StopHarder
from cockpit.screens.presets import PresetScreen
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.steps import StepWriter
from tests.cockpit.conftest import NOW
from tests.cockpit.driving import keys, text, until
from tests.cockpit.looks import SIZES, Pictures
from tests.support.fake_run import FakeRun

Make = Callable[..., CockpitApp]
HEADS = {"action": 0.6, "look": 0.02, "hotbar": 0.05, "cursor": 0.02, "inventory": 0.03, "idle": 0.3}
WEIGHTS = "loss_weights: {action: 1.0, look: 0.5, hotbar: 0.3, cursor: 0.5, inventory: 0.3, idle: 0.3}\n"
CONFIG = f"""\
project: controls
data: {{path: /data}}
training: {{lr: 0.0005, min_lr: 1.0e-6, warmup_epochs: 1, epochs: 12, patience: 3}}
{WEIGHTS}"""


@pytest.fixture
def training(fake: FakeRun, settings: SettingsFile, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRun]:
    """Three epochs of twelve; a weight was edited, the gradient measured; there is a preset."""
    monkeypatch.setattr(followed, "SHOW_SECONDS", 0.1)
    monkeypatch.setattr(time, "time", lambda: NOW)
    presets = settings.path.parent / "presets"
    presets.mkdir()
    (presets / "controls-calm.yaml").write_text(WEIGHTS)
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
    fake.say(
        ev.CommandAnswer(command=edit, state="applied", step=17), ev.GradientNorms(step=26, norms=norms, parameters=100)
    )
    with fake.locked():
        yield fake


@SIZES
async def test_steering(pictures: Pictures, cockpit: Make, training: FakeRun, size: tuple[int, int]) -> None:
    async with cockpit(open_run=training.run).run_test(size=size) as pilot:
        await until(pilot, lambda: keys(pilot).get("weights"))
        await pilot.press("w")
        await until(pilot, lambda: "look 0.6: applied at step 17" in text(pilot) and "raw loss" in text(pilot))
        await pilot.press("down", "right", "right", "down", "L", "down", "down", "0", ".", "6", "down")
        await until(pilot, lambda: "2 changes" in text(pilot))
        await pictures.take(pilot)
        await pilot.press("o")
        await until(pilot, lambda: isinstance(pilot.app.screen, PresetScreen) and "calm" in text(pilot))
        await pictures.take(pilot)
        await pilot.press("escape")
        await pilot.app.push_screen(StopHarder("controls-20261127-201400-amber", lambda number: None))
        await until(pilot, lambda: "keep waiting" in text(pilot))
        await pictures.take(pilot)
        await pilot.press("escape", "escape")
        await until(pilot, lambda: "Unapplied changes" in text(pilot))
        await pictures.take(pilot)
        await pilot.press("d")
        await until(pilot, lambda: keys(pilot).get("lr & stop"))
        await pilot.press("l")
        await until(pilot, lambda: "Patience, epochs" in text(pilot) and "No change" in text(pilot))
        await pilot.press("0", ".", "5", "down", "right", "up")
        await until(pilot, lambda: "multiplied by 0.5" in text(pilot))
        await pictures.take(pilot)
