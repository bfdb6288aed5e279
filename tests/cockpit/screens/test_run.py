"""The screen of one run, driven by keys, over a fabricated run directory."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.core.run import follow
from cockpit.core.runs import baseline
from cockpit.screens import run as run_screen
from cockpit.screens.run import RunScreen
from cockpit.screens.weights import WeightsScreen
from cockpit.widgets.epoch_table import EpochTable
from cockpit.widgets.metric_chart import MetricChart
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.rundir import RunDirectory
from engines.contract.steps import StepWriter
from engines.runs.state import RunReader
from tests.cockpit.driving import keys, text, until
from tests.support.fake_run import FakeRun, epoch

Make = Callable[..., CockpitApp]


def rows(pilot: Pilot[None]) -> list[str]:
    table = pilot.app.screen.query_one(EpochTable)
    return [table.line(index).plain for index in range(table.count)]


@pytest.mark.behaviour("run-100-000-epochs")
async def test_while_a_long_history_is_read_nothing_is_claimed_and_every_key_works(
    cockpit: Make, fake: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = threading.Event()

    class LongReader(RunReader):
        @property
        def behind(self) -> bool:
            return not whole.is_set()

    monkeypatch.setattr(follow, "RunReader", LongReader)
    fake.begin().started(epochs=12_000).epochs(*range(1, 12), best=7).end("stopped")
    async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: f"{fake.id}  reading …" in text(pilot))
        for key, tab in (("2", "table"), ("3", "charts"), ("1", "overview")):
            await pilot.press(key)
            await until(pilot, lambda tab=tab: pilot.app.screen.query_one(f"#tab-{tab}").has_class("-active"))  # type: ignore[misc]
            assert "reading …" in text(pilot)
            assert "/12,000" not in text(pilot)
            assert not {name for name, can in keys(pilot).items() if can} & {"pause", "stop", "resume", "fork"}
        assert "0.091" not in text(pilot)
        whole.set()
        await until(pilot, lambda: "epoch 11/12,000" in text(pilot) and "0.091 0.500" in text(pilot))
        assert "■ stopped" in text(pilot)
        assert "reading …" not in text(pilot)
        assert keys(pilot)["resume"]


async def test_rows_appear_and_the_best_is_marked(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started(epochs=100).epochs(1, 2, best=1)
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: len(rows(pilot)) == 2)
            assert rows(pilot)[0].split() == ["1", "1.000", "0.500", "0.250", "0.100", "5.0e-4", "★"]
            assert rows(pilot)[1].split()[-1] == "5.0e-4"
            fake.epochs(3, best=3)
            await until(pilot, lambda: len(rows(pilot)) == 3)
            assert [row.endswith("★") for row in rows(pilot)] == [False, False, True]
            assert "best 3 · score 0.300 · patience 0/3" in text(pilot)
            await until(pilot, lambda: "epoch 3/100" in text(pilot))


async def test_the_best_stands_beside_the_baseline_until_that_is_gone(
    cockpit: Make, folder: Path, fake: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_screen, "MACHINE_SECONDS", 0.1)
    fake.begin().started().epochs(1, 2, 3, best=3).end("finished")
    base = FakeRun(folder, "controls-20261127-201400-slate").begin().started().epochs(1, best=1, score=0.25)
    async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "best 3 · score 0.300 · patience 0/3" in text(pilot))
        baseline.pin(folder, base.run)
        await until(pilot, lambda: "best 3 · score 0.300 · +0.050 vs slate · patience 0/3" in text(pilot))
        shutil.rmtree(base.run.path)
        await until(pilot, lambda: "baseline slate is gone" in text(pilot))
        baseline.pin(folder, fake.run)
        await until(pilot, lambda: "score 0.300 · baseline · patience" in text(pilot))


async def test_the_newest_row_is_in_view_unless_the_person_scrolled(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started(epochs=1000).epochs(*range(101, 151))
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: " 150 " in text(pilot))
            fake.epochs(151)
            await until(pilot, lambda: " 151 " in text(pilot))
            await pilot.press("home")
            await until(pilot, lambda: " 101 " in text(pilot))
            fake.epochs(152)
            await until(pilot, lambda: len(rows(pilot)) == 52)
            assert " 101 " in text(pilot)
            assert " 152 " not in text(pilot)
            await pilot.press("end")
            fake.epochs(153)
            await until(pilot, lambda: " 153 " in text(pilot))


@pytest.mark.behaviour("after-resume-older-checkpoint")
async def test_rows_superseded_by_a_resume_are_gone(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started().epochs(1, 2, 3, best=3)
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(140, 40)) as pilot:
            await until(pilot, lambda: len(rows(pilot)) == 3)
            fake.begin().started(resumed_step=10)
            await until(pilot, lambda: len(rows(pilot)) == 1)
            fake.say(epoch(2, score=0.9, best=True))
            await until(pilot, lambda: len(rows(pilot)) == 2)
            assert rows(pilot)[1].split()[4] == "0.900"
            assert "resumed from step 10" in text(pilot)


async def test_log_lines_are_text_and_nothing_else(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started()
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
            await pilot.press("4")
            fake.run.stdout.write_bytes(
                b"[bold]not bold[/bold] [/nothing\n\x1b[2J\x1b[31mred\x1b[0m \x1b]0;title\x07\xff\n"
                + "漢字 wide\n".encode()
                + b"".join(b"\r%d%%" % update for update in range(101))
            )
            await until(pilot, lambda: "100%" in text(pilot))
            assert "[bold]not bold[/bold] [/nothing" in text(pilot)
            assert "red �" in text(pilot)
            assert "漢字 wide" in text(pilot)
            assert "99%" not in text(pilot)
            assert "\x1b" not in text(pilot)
            assert len({len(line) for line in text(pilot).splitlines() if "漢" not in line}) == 1


async def test_damage_is_a_quiet_line_and_the_rest_goes_on(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started()
    fake.run.events.write_bytes(fake.run.events.read_bytes() + b"nonsense\n\x00\n{}\n")
    fake.epochs(1)
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "3 bad lines in events.jsonl" in text(pilot) and "● running" in text(pilot))
            await until(pilot, lambda: len(rows(pilot)) == 1)


@pytest.mark.behaviour("first-step-finite-told")
async def test_new_alerts_pop_up_and_old_ones_are_listed(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started().say(ev.Alert(code="a", level="warning", text="an old [b]warning[/]"))
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(140, 40), notifications=True) as pilot:
            await until(pilot, lambda: "an old [b]warning[/]" in text(pilot))
            assert text(pilot).count("an old") == 1
            fake.say(ev.Alert(code="nonfinite", level="error", text="the loss is nan"))
            await until(pilot, lambda: text(pilot).count("the loss is nan") == 2)
            await pilot.press("w")  # what a resume has put behind it meanwhile is listed, and no news
            await until(pilot, lambda: isinstance(pilot.app.screen, WeightsScreen))
            fake.say(ev.Alert(code="a", level="error", text="of the first attempt")).end("failed").begin().started()
            fake.say(ev.Alert(code="b", level="error", text="of the second"))
            await pilot.press("escape")
            await until(pilot, lambda: text(pilot).count("of the second") == 2)
            assert text(pilot).count("of the first attempt") == 1


@pytest.mark.behaviour("nan-gap-mark-count")
async def test_numbers_that_are_not_finite_are_shown_as_that(cockpit: Make, fake: FakeRun) -> None:
    bad = epoch(2)
    bad.train["loss"] = None
    bad.nonfinite = ["train.loss"]
    fake.begin().started().epochs(1).say(bad).epochs(3)
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: len(rows(pilot)) == 3)
            assert rows(pilot)[1].split()[:2] == ["2", "nan"]
            await until(pilot, lambda: "1 not finite" in text(pilot))
            assert "×" in chart_text(pilot)


def chart_text(pilot: Pilot[None]) -> str:
    chart = pilot.app.screen.query_one("#loss", MetricChart)
    return "\n".join(chart.render_line(y).text for y in range(chart.size.height))


@pytest.mark.behaviour("losses-computed-other-loss")
async def test_edits_resumes_and_the_best_epoch_are_marked_on_the_chart(cockpit: Make, fake: FakeRun) -> None:
    edit = cmd.SetLossWeights(attempt=1, weights={"look": 0.8})
    fake.begin().started().epochs(1, 2, best=2).say(ev.CommandAnswer(command=edit, state="applied", step=15))
    fake.begin().started(resumed_step=20)
    fake.say(*(replace(epoch(number), weights={"action": 1.0, "look": 0.8}) for number in (3, 4)))
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(140, 40), tooltips=True) as pilot:
            await until(pilot, lambda: len(rows(pilot)) == 4)
            await until(pilot, lambda: all(sign in chart_text(pilot) for sign in "▲★"))
            assert "Loss · weights look 0.8" in text(pilot)
            assert "▲ edit" in text(pilot)
            assert [row[2:10].split() for row in rows(pilot)] == [["1.000"], ["0.500"], ["b", "0.333"], ["b", "0.250"]]
            assert "patience 2/3 · b: look 0.8" in text(pilot)
            await pilot.hover(EpochTable)
            await until(pilot, lambda: "b  look 0.8, from epoch 3" in text(pilot))
            assert "edit    loss weights look 0.8  applied at step 15" in text(pilot)
            await pilot.press("3")
            await until(pilot, lambda: "by step" in text(pilot))
            await pilot.press("full_stop")
            await until(pilot, lambda: "at step 40 · weights look 0.8" in text(pilot))


async def test_steps_show_before_the_first_epoch(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started(epochs=10)
    steps = StepWriter(fake.run.steps, ["time", "loss"])
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "no value yet" in text(pilot))
            steps.append(np.array([[step, 1, step * 0.5, 0.75] for step in range(5)]))
            await until(pilot, lambda: "step 5" in text(pilot))
            assert "loss 0.7500" in text(pilot)
            assert "2.0 steps/s" in text(pilot)
            assert "5 %" in text(pilot)  # 5 of 10 × 10 steps
            await until(pilot, lambda: "no step yet" not in text(pilot))


async def test_a_run_directory_without_records_shows_why(cockpit: Make, folder: Path) -> None:
    (folder / "empty").mkdir()
    async with cockpit(open_run=RunDirectory(folder / "empty")).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "no run.json" in text(pilot))
        await pilot.press("p", "s", "r", "k", *"12345678")
        assert isinstance(pilot.app.screen, RunScreen)
