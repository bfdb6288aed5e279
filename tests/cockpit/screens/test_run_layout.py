"""What the screen of a run shows in which size, tab and kind of run: panes, header and footer."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widget import Widget

from cockpit.app import CockpitApp
from cockpit.screens.choose_runs import ChooseRunsScreen
from cockpit.widgets.epoch_table import EpochTable
from cockpit.widgets.footer import Footer
from cockpit.widgets.metric_chart import MetricChart
from engines.contract import events as ev
from engines.host.machine import Reading
from tests.cockpit.conftest import StillMachine
from tests.cockpit.driving import keys, text, until
from tests.support.fake_run import FakeRun

Make = Callable[..., CockpitApp]


def shown(pilot: Pilot[None]) -> set[str]:
    """Ids of the panes that are on the screen."""
    panes = pilot.app.screen.query(".pane, #loss, #score").results(Widget)
    return {str(pane.id) for pane in panes if pane.display and pane.size.height > 0 and pane.region.height > 0}


def focus(pilot: Pilot[None]) -> str | None:
    """Id of the widget that keys go to."""
    return pilot.app.focused.id if pilot.app.focused else None


@pytest.mark.behaviour("killed-run-tells-signal")
async def test_how_it_failed_stands_above_the_last_lines_of_its_log(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started().epochs(1)
    fake.run.stdout.write_text("loading\nRuntimeError: out of memory\n")
    fake.end("failed", exit_code=None, signal="SIGKILL")
    async with cockpit(open_run=fake.run).run_test(size=(80, 24)) as pilot:
        words = ("killed by SIGKILL after step 0", "✖ failed", "RuntimeError: out of memory")
        await until(pilot, lambda: all(part in text(pilot) for part in words))
        assert {"epochs", "log"} <= shown(pilot)


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
