"""Starting a run: the choice of configs, the form, and what it asks on its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from cockpit.app import CockpitApp
from cockpit.core.config import configs
from cockpit.screens.launch_dialogs import BlockScreen, LeaveScreen, SaveScreen
from cockpit.screens.launch_form import LaunchFormScreen
from tests.cockpit.driving import keys, text, until
from tests.cockpit.looks import SIZES, Pictures

Make = Callable[..., CockpitApp]
WALK = """\
# A walk in the park: small, on two CPU cores
project: controls

data:
  path: recordings            # one .npz a session

training:
  epochs: 4
  lr: 1e-3                    # high
cost:
  usd_per_hour: 2.5
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "walk.yaml").write_text(WALK)
    (tmp_path / "configs" / "old.yaml").write_text("# From elsewhere\nproject: gone\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(configs, "SHIPPED", tmp_path / "none")


async def go_to(pilot: Pilot[None], name: str) -> None:
    await pilot.press("slash")
    pilot.app.screen.query_one("#filter", Input).value = name
    await pilot.press("enter")


@SIZES
async def test_launch(pictures: Pictures, cockpit: Make, config: None, size: tuple[int, int]) -> None:
    async with cockpit().run_test(size=size) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "A walk in the park" in text(pilot) and "From elsewhere" in text(pilot))
        await pictures.take(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchFormScreen) and keys(pilot).get("start"))
        for name, typed in (("training.seed", "7"), ("training.lr", "fast")):
            await go_to(pilot, name)
            await pilot.press("enter", "ctrl+u", *typed, "enter", "escape")
        await until(pilot, lambda: "1 error" in text(pilot) and "2 changed" in text(pilot))
        await until(pilot, lambda: "input should be a valid number" in text(pilot))
        await pictures.take(pilot)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, SaveScreen))
        await pictures.take(pilot)
        await pilot.press("escape")
        await go_to(pilot, "training.stages")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, BlockScreen) and "ctrl+s" in text(pilot))
        await pictures.take(pilot)
        await pilot.press("escape", "escape", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, LeaveScreen))
        await pictures.take(pilot)
