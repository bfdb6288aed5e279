"""Pictures of all charts, of one, and of foreign logs. After a change that is meant: `--snapshot-update`, and look."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.core.foreign.logs import Logs
from cockpit.screens.charts import ChartsScreen
from tests.cockpit.driving import settled, text, until
from tests.cockpit.looks import LOOKS, SIZES
from tests.support.fake_metrics import FakeMetrics

Make = Callable[..., CockpitApp]


@LOOKS
@SIZES
@pytest.mark.parametrize("enlarged", [False, True], ids=["all", "one"])
def test_charts(snap_compare: Any, cockpit: Make, look: dict[str, Any], size: tuple[int, int], enlarged: bool) -> None:
    source = FakeMetrics(more=12)

    async def ready(pilot: Pilot[None]) -> None:
        await pilot.app.push_screen(ChartsScreen(source, source.marks))
        await until(pilot, lambda: "validation" in text(pilot) and pilot.app.focused)
        await pilot.press("m", "m", "comma", "comma")
        await until(pilot, lambda: "at step 380" in text(pilot))
        if enlarged:
            await pilot.press("tab", "enter")
        await settled(pilot, "at step 380", "0.9", "leave")

    assert snap_compare(cockpit(**look), terminal_size=size, run_before=ready)


@LOOKS
@SIZES
def test_watch(
    snap_compare: Any, cockpit: Make, look: dict[str, Any], size: tuple[int, int], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for place, name in enumerate(("baseline", "wide", "one_with_a_name_that_is_long")):
        rows = [{"step": step, "train.loss": 2 / (step + 1 + place), "lr": 1e-3} for step in range(50 * (place + 1))]
        Path(f"{name}.jsonl").write_text("broken\n" * place + "".join(json.dumps(row) + "\n" for row in rows))

    async def ready(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "100 rows" in text(pilot) and "by step" in text(pilot) and pilot.app.focused)
        await pilot.press("right_square_bracket")
        await settled(pilot, "! 1 problem", "2 lines are damaged", "leave")

    names = ("baseline", "one_with_a_name_that_is_long", "wide")
    app = cockpit(watch=Logs([Path(f"{name}.jsonl") for name in names]), **look)
    assert snap_compare(app, terminal_size=size, run_before=ready)
