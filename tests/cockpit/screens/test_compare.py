"""Comparing runs, driven by keys."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, SelectionList

from cockpit.app import CockpitApp
from cockpit.core.plot.glyphs import UNICODE
from cockpit.core.runs import baseline
from cockpit.core.settings import SettingsFile
from cockpit.screens.columns import ColumnsScreen
from cockpit.screens.compare import CompareScreen
from cockpit.screens.label import LabelScreen
from cockpit.screens.order_by import OrderByScreen
from cockpit.screens.run import RunScreen
from cockpit.screens.runs import RunsScreen
from cockpit.widgets.compare_lines import CompareLines
from cockpit.widgets.compare_table import CompareTable
from tests.cockpit.driving import keys, text, until
from tests.support.compared import configured
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
    await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen) and "drawn" in text(pilot))


def lines(pilot: Pilot[None]) -> CompareLines:
    return pilot.app.screen.query_one(CompareLines)


def named(pilot: Pilot[None]) -> list[str]:
    """The lines of the table, in order."""
    return [line.name for line in lines(pilot).table.lines]


def drawn(pilot: Pilot[None]) -> set[str]:
    """The roles of the lines in the charts."""
    charts = pilot.app.screen.panel._charts  # type: ignore[attr-defined]
    return {role for members in charts.values() for role, _ in members}


async def test_marked_runs_are_compared_in_tabs_and_escape_keeps_the_marks(
    cockpit: Make, two: tuple[FakeRun, FakeRun]
) -> None:
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await compared(pilot)
        await until(pilot, lambda: named(pilot) == ["K=60", "K=10"])  # the best first
        assert all(words in text(pilot) for words in ("0.180", "0.030", " K ", "2 runs · 2 drawn"))
        await pilot.press("2")
        await until(pilot, lambda: "train.loss" in text(pilot) and "by step" in text(pilot))
        assert "● K=60" in text(pilot)
        assert "■ K=10" in text(pilot)
        await pilot.press("3")
        await until(pilot, lambda: "0.1800 ★ ep 3" in text(pilot))
        await pilot.press("4")
        await until(pilot, lambda: "model.K" in text(pilot) and "5 keys are equal" in text(pilot))
        await pilot.press("1")
        await until(pilot, lambda: "model.K" not in text(pilot) and " K " in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen) and "2 marked" in text(pilot))


async def test_a_wide_screen_shows_all_parts(cockpit: Make, two: tuple[FakeRun, FakeRun]) -> None:
    async with cockpit().run_test(size=(200, 50)) as pilot:
        await compared(pilot)
        await until(
            pilot,
            lambda: all(words in text(pilot) for words in ("by step", "0.1800 ★ ep 3", "model.K", "keys are equal")),
        )


async def test_a_line_is_drawn_taken_off_and_opened(cockpit: Make, two: tuple[FakeRun, FakeRun]) -> None:
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await compared(pilot)
        await until(pilot, lambda: drawn(pilot) == {"run-1", "run-2"})
        await pilot.press("space")
        await until(pilot, lambda: drawn(pilot) == {"run-2"} and "1 drawn" in text(pilot))
        await pilot.press("space")
        await until(pilot, lambda: drawn(pilot) == {"run-1", "run-2"})
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
        assert pilot.app.screen.run.path == two[1].run.path  # type: ignore[attr-defined]


async def test_live_runs_are_followed_and_a_deleted_one_is_gone(cockpit: Make, two: tuple[FakeRun, FakeRun]) -> None:
    with two[0].locked():
        two[0].begin().started(resumed_step=30)
        async with cockpit().run_test(size=(120, 24)) as pilot:
            await compared(pilot)
            two[0].say(epoch(4, score=0.99, best=True))
            await until(pilot, lambda: "0.990" in text(pilot) and "● running" in text(pilot))
            assert named(pilot) == ["K=10", "K=60"]
            shutil.rmtree(two[1].run.path)
            await until(pilot, lambda: "✖ gone" in text(pilot))
            await pilot.press("down", "enter")
            assert isinstance(pilot.app.screen, CompareScreen)


async def test_the_table_is_ordered_by_any_column_and_the_choice_of_columns_is_kept(
    cockpit: Make, two: tuple[FakeRun, FakeRun], settings: SettingsFile
) -> None:
    async with cockpit().run_test(size=(120, 30)) as pilot:
        await compared(pilot)
        await until(pilot, lambda: named(pilot) == ["K=60", "K=10"])
        await pilot.press("o")
        await until(pilot, lambda: isinstance(pilot.app.screen, OrderByScreen))
        await pilot.press("down", "enter")  # the setting behind the score
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen) and named(pilot) == ["K=10", "K=60"])
        assert "K▲" in text(pilot)
        header = next(line for line in text(pilot).splitlines() if "Score" in line)
        await pilot.click(offset=(header.index("TrLoss") + 1, 3))
        await until(pilot, lambda: "TrLoss▲" in text(pilot))
        await pilot.press("v")
        await until(pilot, lambda: isinstance(pilot.app.screen, ColumnsScreen))
        await pilot.press("space", "enter")  # no score
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen) and "Score" not in text(pilot))
    kept = SettingsFile(settings.path).value.compare_columns
    assert "score" not in kept["controls"]
    assert "train.loss" in kept["controls"]


async def test_seeds_are_one_line_with_a_band_open_to_their_runs_and_apart(cockpit: Make, folder: Path) -> None:
    for place, seed in enumerate((1, 2, 3)):
        configured(folder, "amber", 0.1, 0.5 + seed / 10, label=f"seed={seed}", at=place, seed=seed).end("finished")
    configured(folder, "birch", 0.3, at=9, lr=5).end("finished")
    async with cockpit().run_test(size=(120, 30)) as pilot:
        await compared(pilot)
        await until(pilot, lambda: "0.700 ±0.100" in text(pilot) and "4 runs in 2 lines · 2 drawn" in text(pilot))
        charts = pilot.app.screen.panel._charts  # type: ignore[attr-defined]
        await until(pilot, lambda: len(charts) or True)
        role, score = pilot.app.screen.panel._charts["score"][0]  # type: ignore[attr-defined]
        assert role == "run-1"
        assert [round(edge[-1], 6) for edge in score.band] == [0.6, 0.8]
        await pilot.press("enter")
        await until(pilot, lambda: named(pilot)[1:4] == ["seed=3", "seed=2", "seed=1"])
        await pilot.press("e")
        await until(pilot, lambda: "enter shows them" in text(pilot) or pilot.app._notifications)
        assert isinstance(pilot.app.screen, CompareScreen)
        await pilot.press("z")
        await until(pilot, lambda: named(pilot) == ["seed=3", "seed=2", "seed=1", "birch"])
        await until(pilot, lambda: "4 drawn" in text(pilot))
        await pilot.press("z")
        await until(pilot, lambda: len(named(pilot)) == 2)


async def test_a_baseline_is_pinned_and_tags_are_given(cockpit: Make, two: tuple[FakeRun, FakeRun]) -> None:
    folder = two[0].run.path.parent
    async with cockpit().run_test(size=(120, 30), notifications=True) as pilot:
        await compared(pilot)
        await until(pilot, lambda: named(pilot) == ["K=60", "K=10"])
        await pilot.press("b")
        await until(pilot, lambda: "-0.150" in text(pilot) and "pinned" in text(pilot))
        assert baseline.pinned(folder) == {"controls": two[1].id}
        await pilot.press("down", "e")
        await until(pilot, lambda: isinstance(pilot.app.screen, LabelScreen))
        pilot.app.screen.query_one("#tags", Input).value = "good, base good"
        await pilot.press("enter")
        await until(pilot, lambda: "good base" in text(pilot))
        assert two[0].run.info.tags == ["good", "base"]
        await pilot.press("up", "b")
        await until(pilot, lambda: "-0.150" not in text(pilot))
        assert baseline.pinned(folder) == {}


async def test_forty_runs_and_a_broken_one(cockpit: Make, folder: Path) -> None:
    for n in range(40):
        configured(folder, "amber", n / 100, at=n, lr=n, seed=n).end("finished")
    broken = FakeRun(folder, "controls-20261128-201400-moss")
    broken.run.info_file.write_text("{garbage")
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(pilot.app.screen.chosen.rows) == 41)  # type: ignore[attr-defined]
        await pilot.press("down")  # off the broken one, which cannot be opened
        await compared(pilot)
        await until(pilot, lambda: "41 runs · 8 drawn" in text(pilot) and len(named(pilot)) == 41)
        assert "0.390" in text(pilot)
        await pilot.press("end")
        await until(pilot, lambda: "moss" in text(pilot) and "moss: run.json cannot be read" in text(pilot))
        await pilot.press("up", "space")
        await until(pilot, lambda: any("8 lines are drawn" in one.message for one in pilot.app._notifications))
        copied = lines(pilot).copyable().splitlines()
        assert len(copied) == 43
        assert copied[2].startswith("| controls-20261127-201439-amber | 0.390 | 39 | 39 |")


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
        fake = configured(folder, "amber", *(n * (place + 1) / 100 for n in (1, 2, 3)), label=label, at=place)
        fake.end("finished")
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
        assert not set(line) & set(signs)  # the table above says what they are
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: all(f"…{rate} " in text(pilot) or f" {rate} " in text(pilot) for rate in rates))
        await pilot.press("3")
        await until(pilot, lambda: "→ 3 more runs" in text(pilot))
        (row,) = [line for line in text(pilot).splitlines() if line.startswith("│ score")]
        assert [float(word) for word in row.split() if word[0] == "0"] == [0.24, 0.21, 0.18, 0.15, 0.12]
        values.scroll_to(x=values.max_scroll_x, animate=False)
        await until(pilot, lambda: "0.03000" in text(pilot).partition("Values ─")[2] and "more run" not in text(pilot))
