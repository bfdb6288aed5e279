"""Pictures of starting a run, in every look and size. After a change that is meant: `--snapshot-update`, and look."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from cockpit.app import CockpitApp
from cockpit.core import configs
from cockpit.screens.launch_form import LaunchFormScreen
from tests.cockpit.driving import keys, text, until
from tests.cockpit.looks import LOOKS, SIZES

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


async def choose(pilot: Pilot[None]) -> None:
    await pilot.press("n")
    await until(pilot, lambda: "A walk in the park" in text(pilot) and "From elsewhere" in text(pilot))


@LOOKS
@SIZES
def test_the_choice_of_configs(
    snap_compare: Any, cockpit: Make, config: None, size: tuple[int, int], look: dict[str, Any]
) -> None:
    assert snap_compare(cockpit(**look), terminal_size=size, run_before=choose)


@LOOKS
@SIZES
def test_a_form_with_changes_and_faults(
    snap_compare: Any, cockpit: Make, config: None, size: tuple[int, int], look: dict[str, Any]
) -> None:
    async def ready(pilot: Pilot[None]) -> None:
        await choose(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchFormScreen) and keys(pilot).get("go"))
        for name, typed in (("training.seed", "7"), ("training.lr", "fast")):
            await pilot.press("slash")
            pilot.app.screen.query_one("#filter", Input).value = name
            await pilot.press("enter", "enter", "ctrl+u", *typed, "enter", "escape")
        await until(pilot, lambda: "1 fault" in text(pilot) and "2 changed" in text(pilot))
        await until(pilot, lambda: "input should be a valid number" in text(pilot))
        await pilot.press("down", "up")

    assert snap_compare(cockpit(**look), terminal_size=size, run_before=ready)
