"""The thresholds of a run, what saving would change, and what was saved before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cockpit.app import CockpitApp
from cockpit.screens import thresholds_reading
from cockpit.screens.thresholds import ThresholdsScreen
from cockpit.screens.thresholds_review import HistoryDialog, ReviewDialog
from tests.cockpit.driving import text, until
from tests.cockpit.looks import SIZES, Pictures
from tests.support.fake_review import reviewed_run, sent_arrays

Make = Callable[..., CockpitApp]


@SIZES
async def test_thresholds(
    pictures: Pictures, cockpit: Make, folder: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    for name in ("STALE_SECONDS", "QUIET_SECONDS", "RESAMPLE_SECONDS"):
        monkeypatch.setattr(thresholds_reading, name, 0.1)
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    monkeypatch.setattr("socket.gethostname", lambda: "pod")
    run = reviewed_run(folder, sent_arrays()).run
    async with cockpit().run_test(size=size) as pilot:
        await pilot.app.push_screen(ThresholdsScreen(run, lambda: 5.0))
        await until(pilot, lambda: "as saved" in text(pilot) and "overall" in text(pilot))
        await pilot.press("down", "o", "L", "down", "right_square_bracket")
        await until(pilot, lambda: "2 changed" in text(pilot) and "→" in text(pilot))
        await pictures.take(pilot)
        await pilot.press("S")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReviewDialog))
        await pictures.take(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "as saved" in text(pilot))
        await pilot.press("h")
        await until(pilot, lambda: isinstance(pilot.app.screen, HistoryDialog))
        await pictures.take(pilot)
