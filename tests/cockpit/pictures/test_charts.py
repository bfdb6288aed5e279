"""All charts of a log, one of them enlarged, and the logs of other programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cockpit.app import CockpitApp
from cockpit.core.foreign.logs import Logs
from cockpit.widgets.metric_chart import MetricChart
from tests.cockpit.charts_screen import ChartsScreen
from tests.cockpit.driving import text, until
from tests.cockpit.looks import SIZES, Pictures
from tests.support.fake_metrics import FakeMetrics

Make = Callable[..., CockpitApp]


@SIZES
async def test_charts(pictures: Pictures, cockpit: Make, size: tuple[int, int]) -> None:
    source = FakeMetrics(more=12)
    async with cockpit().run_test(size=size) as pilot:
        await pilot.app.push_screen(ChartsScreen(source, source.marks))
        await until(pilot, lambda: "validation" in text(pilot) and isinstance(pilot.app.focused, MetricChart))
        await pilot.press("m", "m", "comma", "comma")
        await until(pilot, lambda: "at step 380" in text(pilot))
        await pictures.take(pilot, "all")
        await pilot.press("tab", "enter")
        await pictures.take(pilot, "one")


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Logs:
    """Three, the second and third with damaged lines."""
    monkeypatch.chdir(tmp_path)
    for place, name in enumerate(("baseline", "wide", "one_with_a_name_that_is_long")):
        rows = [{"step": step, "train.loss": 2 / (step + 1 + place), "lr": 1e-3} for step in range(50 * (place + 1))]
        Path(f"{name}.jsonl").write_text("broken\n" * place + "".join(json.dumps(row) + "\n" for row in rows))
    return Logs([Path(f"{name}.jsonl") for name in ("baseline", "one_with_a_name_that_is_long", "wide")])


@SIZES
async def test_watch(pictures: Pictures, cockpit: Make, logs: Logs, size: tuple[int, int]) -> None:
    async with cockpit(watch=logs).run_test(size=size) as pilot:
        await until(pilot, lambda: "100 rows" in text(pilot) and isinstance(pilot.app.focused, MetricChart))
        await until(pilot, lambda: "by step" in text(pilot))
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: "! 1 problem" in text(pilot) and "2 damaged lines" in text(pilot))
        await pictures.take(pilot, "all")
        await pilot.press("enter")
        await pictures.take(pilot, "one")
        await pilot.press("escape", "c")
        await until(pilot, lambda: text(pilot).count("■") > 3)
        await pilot.press("space")
        await until(pilot, lambda: "2 damaged lines" not in text(pilot))
        await pictures.take(pilot, "overlaid")
