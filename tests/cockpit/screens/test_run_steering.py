"""Commands from the screen of a run: what became of them, stopping and stopping harder, resuming a lost run."""

import signal
from collections.abc import Callable

import psutil
import pytest

from cockpit.app import CockpitApp
from cockpit.screens.confirm import StopHarder
from cockpit.screens.run import RunScreen
from cockpit.widgets.status_line import StatusLine
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from tests.cockpit.driving import commands_of, keys, text, until
from tests.support.fake_run import FakeEngine, FakeRun

Make = Callable[..., CockpitApp]


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
