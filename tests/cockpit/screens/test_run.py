"""The screen of one run, driven by keys, over a fabricated run directory."""

import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest
from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widget import Widget

from cockpit.app import CockpitApp
from cockpit.core.run import follow
from cockpit.core.runs import baseline
from cockpit.screens import run as run_screen
from cockpit.screens.choose_runs import ChooseRunsScreen
from cockpit.screens.confirm import StopHarder
from cockpit.screens.run import RunScreen
from cockpit.screens.weights import WeightsScreen
from cockpit.widgets.epoch_table import EpochTable
from cockpit.widgets.footer import Footer
from cockpit.widgets.metric_chart import MetricChart
from cockpit.widgets.status_line import StatusLine
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.rundir import RunDirectory
from engines.contract.steps import StepWriter
from engines.host.machine import Reading
from engines.runs import launch
from engines.runs.state import RunReader
from tests.cockpit.conftest import StillMachine
from tests.cockpit.driving import commands_of, keys, text, until
from tests.support.fake_run import FakeEngine, FakeRun, epoch

Make = Callable[..., CockpitApp]


def rows(pilot: Pilot[None]) -> list[str]:
    table = pilot.app.screen.query_one(EpochTable)
    return [table.line(index).plain for index in range(table.count)]


def shown(pilot: Pilot[None]) -> set[str]:
    """Ids of the panes that are on the screen."""
    panes = pilot.app.screen.query(".pane, #loss, #score").results(Widget)
    return {str(pane.id) for pane in panes if pane.display and pane.size.height > 0 and pane.region.height > 0}


def focus(pilot: Pilot[None]) -> str | None:
    """Id of the widget that keys go to."""
    return pilot.app.focused.id if pilot.app.focused else None


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


async def test_an_order_and_its_answers_are_told(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started()
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(140, 40)) as pilot:
            await until(pilot, lambda: keys(pilot).get("pause"))
            await pilot.press("p")
            await until(pilot, lambda: "pause sent" in text(pilot))
            (order,) = commands_of(fake)
            assert isinstance(order, cmd.Pause)
            assert order.attempt == 1
            fake.say(ev.CommandAnswer(command=order, state="seen", step=7))
            await until(pilot, lambda: "pause  received" in text(pilot))
            fake.say(ev.CommandAnswer(command=order, state="applied", step=8), ev.Phase(phase="paused", step=8))
            await until(pilot, lambda: "pause  applied at step 8" in text(pilot))
            await until(pilot, lambda: "‖ paused" in text(pilot) and keys(pilot).get("continue"))
            await until(
                pilot, lambda: "pause applied at step 8" in str(pilot.app.screen.query_one(StatusLine).render())
            )
            await pilot.press("p")
            await until(pilot, lambda: len(commands_of(fake)) == 2)
            assert isinstance(commands_of(fake)[1], cmd.Continue)


async def test_a_refusal_is_told_with_its_reason(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started()

    def refuse(command: cmd.Command) -> None:
        fake.say(ev.CommandAnswer(command=command, state="refused", step=3, reason="the disk is [b]full[/]"))

    with fake.locked(), FakeEngine(fake, refuse):
        async with cockpit(open_run=fake.run).run_test(size=(140, 40)) as pilot:
            await until(pilot, lambda: keys(pilot).get("checkpoint"))
            await pilot.press("k")
            await until(pilot, lambda: "save a checkpoint  refused because the disk is [b]full[/]" in text(pilot))


@pytest.mark.behaviour("stop-saves-stops-pressed")
async def test_five_fast_presses_stop_once_and_ask_once(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started()
    app = cockpit(open_run=fake.run)
    with fake.locked() as holder:
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: keys(pilot).get("stop"))
            await pilot.press("s", "s", "s", "s", "s")
            await until(pilot, lambda: commands_of(fake) and isinstance(app.screen, StopHarder))
            assert "keep waiting" in text(pilot)
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, RunScreen))
            assert [type(order) for order in commands_of(fake)] == [cmd.Stop]
            assert psutil.pid_exists(holder)
            await pilot.press("s")
            await until(pilot, lambda: isinstance(app.screen, StopHarder))
            fake.end("stopped")  # the question has answered itself
            await until(pilot, lambda: isinstance(app.screen, RunScreen) and "■ stopped" in text(pilot))


@pytest.mark.behaviour("stop-saves-stops-pressed")
@pytest.mark.parametrize(("key", "number"), [("t", signal.SIGTERM), ("K", signal.SIGQUIT)])
async def test_stopping_harder_signals_the_supervisor(
    cockpit: Make, fake: FakeRun, key: str, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr("os.kill", lambda pid, what: sent.append((pid, what)))
    fake.begin().started()
    with fake.locked() as holder:
        async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: keys(pilot).get("stop"))
            await pilot.press("s", "s")
            await until(pilot, lambda: isinstance(pilot.app.screen, StopHarder))
            await pilot.press(key)
            await until(pilot, lambda: sent)
            assert sent == [(holder, number)]


@pytest.mark.behaviour("run-stays-running-ever")
async def test_a_lost_run_says_so_and_resumes(cockpit: Make, fake: FakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[RunDirectory] = []
    monkeypatch.setattr(launch, "prepare_resume", lambda run, overrides: (None, []))
    monkeypatch.setattr(launch, "start", lambda run, changes: asked.append(run))
    fake.begin().started().epochs(1)
    async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
        with fake.locked():
            await until(pilot, lambda: "● running" in text(pilot))
            assert "resume" not in keys(pilot)
        await until(pilot, lambda: "? lost" in text(pilot))
        assert "no engine and no end recorded" in text(pilot)
        assert keys(pilot)["resume"]
        assert "stop" not in keys(pilot)
        await pilot.press("r", "enter")
        await until(pilot, lambda: asked)
        assert [run.path for run in asked] == [fake.run.path]


@pytest.mark.behaviour("killed-run-tells-signal")
async def test_how_it_failed_stands_above_the_last_lines_of_its_log(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started().epochs(1)
    fake.run.stdout.write_text("loading\nRuntimeError: out of memory\n")
    fake.end("failed", exit_code=None, signal="SIGKILL")
    async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
        words = ("killed by SIGKILL after step 0", "✖ failed", "RuntimeError: out of memory")
        await until(pilot, lambda: all(part in text(pilot) for part in words))
        assert {"epochs", "log"} <= shown(pilot)


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


async def test_a_task_has_a_bar_and_its_log(cockpit: Make, folder: Path) -> None:
    fake = FakeRun(folder, "controls-20261127-201400-birch", kind="task").begin()
    fake.say(ev.Phase(phase="working"), ev.Progress(done=3, total=12, unit="sessions"))
    fake.run.stdout.write_text("session 3 written\n")
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "3 of 12 sessions" in text(pilot) and "session 3 written" in text(pilot))
            assert "25 %" in text(pilot)
            assert shown(pilot) == {"progress", "log"}
            assert "Charts" not in text(pilot)
            await pilot.press("2", "3")
            assert shown(pilot) == {"progress", "log"}
            assert keys(pilot)["stop"]
            assert not keys(pilot)["pause"]
            fake.say(ev.Progress(done=12, total=12, unit="sessions"))
            fake.end("finished")
            await until(pilot, lambda: "✓ finished" in text(pilot) and "100 %" in text(pilot))


@pytest.mark.behaviour("width-is-used")
async def test_what_is_on_the_screen_follows_its_size_and_its_tab(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started().epochs(1)
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: shown(pilot) == {"epochs", "loss"} and "GPU 97 % · 41/80 GB" in text(pilot))
            assert "k checkpoint" in text(pilot).splitlines()[-1]  # the palette gives way to it
            for key, panes in (("2", {"table"}), ("4", {"log-lines"}), ("8", {"events"})):
                await pilot.press(key)
                await until(pilot, lambda panes=panes: shown(pilot) == panes == {focus(pilot)})  # type: ignore[misc]
            await pilot.press("1")
            await pilot.resize_terminal(200, 50)
            await until(pilot, lambda: shown(pilot) == {"epochs", "events", "log", "loss", "score", "machine"})
            await until(pilot, lambda: pilot.app.screen.query_one("#left").size.width == 100)  # the charts get the rest
            await until(pilot, lambda: "action_f1" in text(pilot) and "Seconds" in text(pilot))
            wall = [chart for chart in pilot.app.screen.query(MetricChart) if chart.display]
            assert [chart.name for chart in wall] == ["Loss", "Score", "action", "action_f1"]
            assert {chart.size.width for chart in wall} == {50}
            assert pilot.app.screen.query_one(EpochTable).header().plain.split() == [
                "Ep", "Step", "TrLoss", "Act", "VlF1", "Score", "LR", "Stage", "Seconds",
            ]  # fmt: skip
            await pilot.resize_terminal(90, 45)
            await until(pilot, lambda: shown(pilot) == {"epochs", "log", "loss"})


async def test_the_machine_has_room_for_all_its_bars_also_when_it_is_read_late(cockpit: Make, fake: FakeRun) -> None:
    asked, read = threading.Event(), threading.Event()

    class SlowMachine(StillMachine):
        def read(self, folder: Path) -> Reading:
            asked.set()
            read.wait()
            return super().read(folder)

    fake.begin().started().epochs(1).end("finished")
    async with cockpit(open_run=fake.run, machine=SlowMachine()).run_test(size=(200, 50)) as pilot:
        await until(pilot, lambda: asked.is_set() and "✓ finished" in text(pilot) and "Machine" in text(pilot))
        read.set()
        await until(pilot, lambda: "604 W" in text(pilot))
        await until(pilot, lambda: "164 GB free" in text(pilot))


async def test_the_footer_has_the_keys_of_use_now_and_always_the_ways_out(cockpit: Make, fake: FakeRun) -> None:
    def footer() -> list[str]:
        return [key.partition(" ")[2] for key in text(pilot).splitlines()[-1].strip().split("  ")]

    ways_out = ["runs", "help", "quit"]  # the palette comes last, and goes first where its own keys need the space
    fake.begin().started().epochs(1, best=1)
    app = cockpit(open_run=fake.run)
    async with app.run_test(size=(80, 24)) as pilot:
        with fake.locked():
            await until(pilot, lambda: "● running" in text(pilot))
            await until(pilot, lambda: footer() == ["pause", "stop", "weights", "lr & stop", "checkpoint", *ways_out])
            await pilot.resize_terminal(200, 50)
            steer = ["pause", "stop", "weights", "lr & stop", "checkpoint", "compare", "fork"]
            await until(pilot, lambda: footer() == [*steer, "runs", "help", "commands", "quit"])
            await pilot.resize_terminal(40, 24)
            await until(pilot, lambda: footer() == ["pause", *ways_out])
        fake.end("stopped")
        await pilot.resize_terminal(84, 24)
        await until(pilot, lambda: footer() == ["resume", "weights", "lr & stop", "compare", "fork", *ways_out])
        line = text(pilot).splitlines()[-1]
        await pilot.click(Footer, offset=(line.index("compare") - 1, 0))
        await until(pilot, lambda: isinstance(app.screen, ChooseRunsScreen))


async def test_what_it_cost_is_in_the_header(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started()
    fake.run.config.write_text("cost:\n  usd_per_hour: 2.5\n  budget_usd: 100\n")
    attempt = fake.run.attempt(1)
    attempt.usd_per_hour, attempt.started = 2.5, 1_795_812_000.0 - 1800
    fake.run.write_attempt(attempt)
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "$1.25 of $100 · $2.50/h" in text(pilot))
            await pilot.resize_terminal(120, 36)  # the narrowest with one line of it
            await until(pilot, lambda: "epoch 0/4 " in text(pilot).splitlines()[0])


@pytest.mark.parametrize(
    ("project", "label", "shown", "hidden"),
    [
        ("controls", "", "2026", "x" * 9),
        ("controls", "x" * 20, "·····", "2026"),
        ("a_project_with_a_long_name", "y" * 40, "yyyyy", "·····"),
    ],
)
@pytest.mark.behaviour("money-last-in-the-header")
async def test_the_date_and_then_the_bar_give_way_to_the_money(
    cockpit: Make, folder: Path, project: str, label: str, shown: str, hidden: str
) -> None:
    fake = FakeRun(folder, f"{project}-20261127-204000-wide", label=label).begin().started()
    fake.run.config.write_text("cost:\n  usd_per_hour: 2.5\n  budget_usd: 100\n")
    attempt = fake.run.attempt(1)
    attempt.usd_per_hour, attempt.started = 2.5, 1_795_812_000.0 - 1800
    fake.run.write_attempt(attempt)
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(120, 36)) as pilot:
            await until(pilot, lambda: "$1.25 of $100 · $2.50/h" in text(pilot).splitlines()[0])
            line = text(pilot).splitlines()[0]
            assert shown in line
            assert hidden not in line


async def test_a_run_directory_without_records_shows_why(cockpit: Make, folder: Path) -> None:
    (folder / "empty").mkdir()
    async with cockpit(open_run=RunDirectory(folder / "empty")).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "no run.json" in text(pilot))
        await pilot.press("p", "s", "r", "k", *"12345678")
        assert isinstance(pilot.app.screen, RunScreen)
