"""What an interactive engine shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cockpit.app import CockpitApp
from cockpit.core.scenes.play import Viewing
from cockpit.screens import play
from engines.contract import events as ev
from tests.cockpit.driving import text, until
from tests.cockpit.looks import SIZES, Pictures
from tests.support.fake_run import FakeRun
from tests.support.fake_scenes import FakeScenes, scene

Make = Callable[..., CockpitApp]


@SIZES
async def test_play(
    pictures: Pictures, cockpit: Make, folder: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr(play, "BYTES_PER_SECOND", 1e9)
    monkeypatch.setattr(play, "LEAST_SECONDS", 0.01)
    fake = FakeRun(folder, kind="task").begin().say(ev.Phase(phase="working"))
    with fake.locked(), FakeScenes(fake, scene()):
        async with cockpit(play=Viewing(fake.run)).run_test(size=size) as pilot:
            await until(pilot, lambda: "P2 Falco" in text(pilot) and "quit" in text(pilot))
            await pictures.take(pilot)
