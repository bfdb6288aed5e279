"""Comparing runs, driven by keys."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import SelectionList

from cockpit.app import CockpitApp
from cockpit.core.plot.glyphs import UNICODE
from cockpit.screens.compare import CompareScreen
from cockpit.screens.run import RunScreen
from cockpit.screens.runs import RunsScreen
from cockpit.widgets.compare_table import CompareTable
from tests.cockpit.driving import keys, text, until
from tests.support.fake_run import CONFIG, FakeRun, epoch

Make = Callable[..., CockpitApp]


@pytest.fixture
def two(folder: Path) -> tuple[FakeRun, FakeRun]:
    made = []
    for word, k in (("amber", 10), ("birch", 60)):
        fake = FakeRun(folder, f"controls-20261127-201400-{word}", label=f"K={k}").begin().started()
        fake.run.config.write_text(CONFIG.replace("model: {}", f"model:\n  K: {k}"))
        made.append(fake.say(*(epoch(n, score=n * k / 1000, best=n == 3) for n in (1, 2, 3))).end("finished"))
    return made[0], made[1]


async def compared(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen) and keys(pilot).get("open"))
    await pilot.press("asterisk")
    await until(pilot, lambda: keys(pilot).get("compare"))
    await pilot.press("c")
    await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen) and "3/4" in text(pilot))


async def test_marked_runs_are_compared_in_tabs_and_escape_keeps_the_marks(
    cockpit: Make, two: tuple[FakeRun, FakeRun]
) -> None:
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await compared(pilot)
        await until(pilot, lambda: "train.loss" in text(pilot) and "K=10" in text(pilot) and "K=60" in text(pilot))
        await pilot.press("2")
        await until(pilot, lambda: "0.1800 ★ ep 3" in text(pilot))
        await pilot.press("3")
        await until(pilot, lambda: "model.K" in text(pilot) and "5 keys are equal" in text(pilot))
        await pilot.press("1")
        await until(pilot, lambda: "by step" in text(pilot) and "model.K" not in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen) and "2 marked" in text(pilot))


async def test_a_wide_screen_shows_charts_and_both_tables(cockpit: Make, two: tuple[FakeRun, FakeRun]) -> None:
    async with cockpit().run_test(size=(200, 50)) as pilot:
        await compared(pilot)
        await until(
            pilot,
            lambda: all(words in text(pilot) for words in ("by step", "0.1800 ★ ep 3", "model.K", "keys are equal")),
        )


async def test_a_run_is_hidden_shown_and_opened_from_the_legend(cockpit: Make, two: tuple[FakeRun, FakeRun]) -> None:
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await compared(pilot)
        series = pilot.app.screen.panel  # type: ignore[attr-defined]
        await until(
            pilot, lambda: {role for members in series._charts.values() for role, _ in members} == {"run-1", "run-2"}
        )
        await pilot.press("l", "down", "space")
        await until(pilot, lambda: {role for members in series._charts.values() for role, _ in members} == {"run-1"})
        assert "hidden" in text(pilot)
        await pilot.press("space")
        await until(
            pilot, lambda: {role for members in series._charts.values() for role, _ in members} == {"run-1", "run-2"}
        )
        opened = text(pilot).splitlines()[2]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
        word = "amber" if "K=10" in opened else "birch"
        assert pilot.app.screen.run.path.name.endswith(word)  # type: ignore[attr-defined]


async def test_live_runs_are_followed_and_a_deleted_one_is_gone(cockpit: Make, two: tuple[FakeRun, FakeRun]) -> None:
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await compared(pilot)
        two[0].say(epoch(4, score=0.99, best=True))
        await until(pilot, lambda: "4/4" in text(pilot) and "★ 0.99" in text(pilot))
        shutil.rmtree(two[1].run.path)
        await until(pilot, lambda: "✖ gone" in text(pilot))


async def test_a_run_is_compared_with_others_chosen_from_its_own_screen(
    cockpit: Make, two: tuple[FakeRun, FakeRun]
) -> None:
    async with cockpit(open_run=two[0].run).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen) and "finished" in text(pilot))
        await pilot.press("c")
        await until(pilot, lambda: "K=60" in text(pilot))
        offered = pilot.app.screen.query_one(SelectionList)
        offered.select_all()
        assert [run.path for run in offered.selected] == [two[1].run.path]  # not with itself
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen) and "2 runs" in text(pilot))
        assert [run.path for run in pilot.app.screen._runs] == [fake.run.path for fake in two]  # type: ignore[attr-defined]


async def test_without_another_training_there_is_nothing_to_compare_with(
    cockpit: Make, folder: Path, fake: FakeRun
) -> None:
    fake.begin().started().epochs(1).end("finished")
    async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen) and "finished" in text(pilot))
        await pilot.press("c")
        await until(pilot, lambda: "No other training to compare with." in text(pilot))
        await pilot.press("enter", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))


@pytest.mark.behaviour("column-without-room-left")
async def test_with_eight_runs_each_is_seen_or_counted_and_none_looks_like_another(cockpit: Make, folder: Path) -> None:
    rates = [f"{rate}e-5" for rate in range(1, 9)]
    for place, rate in enumerate(rates):
        label = f"sweep of the learning rate, {rate}"
        fake = FakeRun(folder, f"controls-20261127-20140{place}-amber", label=label).begin().started()
        fake.say(*(epoch(n, score=n * (place + 1) / 100, best=n == 3) for n in (1, 2, 3))).end("finished")
    async with cockpit().run_test(size=(200, 50)) as pilot:
        await compared(pilot)
        await until(pilot, lambda: all(f"learning rate, {rate} " in text(pilot) for rate in rates))
        await until(pilot, lambda: all(f" {value / 100:#.4g} " in text(pilot) for value in range(3, 25, 3)))
        await until(pilot, lambda: "No setting differs." in text(pilot) and "by step" in text(pilot))
        values, config = (pilot.app.screen.query_one(f"#{name}", CompareTable) for name in ("values", "config"))
        signs = list(UNICODE.runs)
        assert values.header().plain.split() == signs
        assert "more run" not in text(pilot)
        assert config.header().plain == ""
        (line,) = [line for line in text(pilot).splitlines() if "by step" in line]
        assert not set(line) & set(signs)  # the list above says what they are
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: all(f"…{rate} " in text(pilot) or f" {rate} " in text(pilot) for rate in rates))
        await pilot.press("2")
        await until(pilot, lambda: "→ 3 more runs" in text(pilot))
        (row,) = [line for line in text(pilot).splitlines() if "score" in line]
        assert [float(word) for word in row.split() if word[0] == "0"] == [0.24, 0.21, 0.18, 0.15, 0.12]
        values.scroll_to(x=values.max_scroll_x, animate=False)
        await until(pilot, lambda: "0.03000" in text(pilot).partition("Values ─")[2] and "more run" not in text(pilot))
