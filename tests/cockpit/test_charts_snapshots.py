"""Pictures of all charts and of one, at two sizes. After a change that is meant: `--snapshot-update`, and look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.screens.charts import ChartsScreen
from tests.cockpit.driving import settled, text, until
from tests.cockpit.looks import SIZES
from tests.support.fake_metrics import FakeMetrics


@SIZES
@pytest.mark.parametrize("enlarged", [False, True], ids=["all", "one"])
def test_charts(snap_compare: Any, cockpit: Callable[..., CockpitApp], size: tuple[int, int], enlarged: bool) -> None:
    source = FakeMetrics(more=12)

    async def ready(pilot: Pilot[None]) -> None:
        await pilot.app.push_screen(ChartsScreen(source, source.marks))
        await until(pilot, lambda: "validation" in text(pilot) and pilot.app.focused)
        await pilot.press("m", "m", "comma", "comma", *(("tab", "enter") if enlarged else ()))
        await settled(pilot, "at step 380", "0.9", "leave")

    assert snap_compare(cockpit(), terminal_size=size, run_before=ready)
