"""What a resume and a fork ask: old against new, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable

from textual.widgets import Input

from cockpit.app import CockpitApp
from tests.cockpit.driving import keys, text, until
from tests.cockpit.looks import SIZES, Pictures
from tests.support.fake_run import FakeRun, stopped_early

Make = Callable[..., CockpitApp]


@SIZES
async def test_resume_and_fork(pictures: Pictures, cockpit: Make, fake: FakeRun, size: tuple[int, int]) -> None:
    stopped_early(fake)
    async with cockpit().run_test(size=size) as pilot:
        for key in ("r", "f"):
            await until(pilot, lambda: keys(pilot).get("resume"))
            await pilot.press(key)
            await until(pilot, lambda: "edited live, kept" in text(pilot))
            pilot.app.screen.query_one("#more", Input).focus()
            await pilot.press(*"model.num_layers=2 training.log_every=5")
            await until(pilot, lambda: "ignored because" in text(pilot) and "applied" in text(pilot))
            await pictures.take(pilot)
            await pilot.press("escape")
