"""The list of runs, driven by keys, over fabricated run directories."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest
from textual.message import Message
from textual.pilot import Pilot

from cockpit.app import CockpitApp
from cockpit.core.runs import summary
from cockpit.core.typed import program
from cockpit.notice import Notice
from cockpit.screens.run import RunScreen
from cockpit.screens.runs import RunsScreen
from cockpit.widgets.runs_table import RunsTable
from engines.basics.errors import UserError
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.alerts import OVERFIT
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.state import RunReader
from tests.cockpit.driving import commands_of, keys, shows, text, until
from tests.support.fake_run import FakeRun

Make = Callable[..., CockpitApp]


def table(pilot: Pilot[None]) -> RunsTable:
    return pilot.app.screen.query_one(RunsTable)


async def test_without_runs_it_says_what_to_press(cockpit: Make) -> None:
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "No runs yet" in text(pilot))
        assert "start one from a config" in text(pilot)
        assert f"run {program()} demo (makes data" in text(pilot)
        assert not keys(pilot)["stop"]
        for _ in range(2):  # also after coming back, with nothing to put a cursor on
            await pilot.press("n")
            await until(pilot, lambda: "choose a config" in text(pilot))
            await pilot.press("escape")
            await until(pilot, lambda: "No runs yet" in text(pilot))


@pytest.mark.behaviour("run-100-000-epochs")
async def test_a_huge_run_holds_back_no_other_and_its_old_alert_is_no_news(
    cockpit: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, heard = threading.Event(), list[Message]()

    class LongReader(RunReader):
        @property
        def behind(self) -> bool:
            return self.run.path.name.endswith("amber") and not whole.is_set()

    monkeypatch.setattr(summary, "RunReader", LongReader)
    FakeRun(folder, "controls-20261127-100000-birch", created=1000.0).begin().started().epochs(1, 2).end("finished")
    huge = FakeRun(folder, created=2000.0).begin().started().epochs(1, 2, 3)
    huge.say(ev.Alert(code=OVERFIT, level="warning", text="it overfits"))
    with huge.locked():
        async with cockpit().run_test(size=(80, 24), message_hook=heard.append) as pilot:
            await until(pilot, lambda: shows(pilot, "✓ finished", "2/4", "… reading", "1 done · 1 reading"))
            assert "3/4" not in text(pilot)
            assert not {name for name, can in keys(pilot).items() if can} & {"pause", "stop", "resume"}
            whole.set()
            await until(pilot, lambda: shows(pilot, "● running !", "3/4") and "reading" not in text(pilot))
            assert keys(pilot)["stop"]
    assert not [message for message in heard if isinstance(message, Notice)]


async def test_every_state_has_its_sign_and_its_word(cockpit: Make, folder: Path) -> None:
    for place, reason in enumerate(("finished", "early-stopped", "stopped", "out-of-budget", "failed")):
        run = FakeRun(folder, f"controls-20261127-10000{place}-amber", created=1000.0 + place)
        run.begin().started().end(reason)  # type: ignore[arg-type]
    FakeRun(folder, "controls-20261127-100009-birch", created=1009.0).begin().started()
    live = FakeRun(folder, "controls-20261127-110000-cedar", created=2000.0).begin().started().epochs(1, best=1)
    with live.locked():
        async with cockpit().run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "cedar" in text(pilot) and "failed" in text(pilot))
            lines = [line.strip("│> ") for line in text(pilot).splitlines()[3:10]]
            assert [line[:15].strip() for line in lines] == [
                "● running", "? lost", "✖ failed", "$ out-of-budget", "■ stopped", "✓ early-stopped", "✓ finished",
            ]  # fmt: skip
            assert "1/4 0.100" in lines[0]


async def test_runs_of_others_appear_and_the_cursor_stays_on_its_run(cockpit: Make, folder: Path) -> None:
    old = FakeRun(folder, "controls-20261127-100000-amber", created=1000.0).begin()
    old.end("finished")
    async with cockpit().run_test(size=(120, 30), notifications=True) as pilot:
        await until(pilot, lambda: "amber" in text(pilot))
        new = FakeRun(folder, "controls-20261127-110000-birch", created=2000.0, label="second try").begin()
        new.end("failed", error="no such file")
        await until(pilot, lambda: "birch" in text(pilot))
        body = text(pilot)
        assert body.index("birch") < body.index("amber")
        cursor = table(pilot).cursor
        assert cursor is not None
        assert cursor.id == old.id
        await pilot.press("up")
        await until(pilot, lambda: "second try · demo.yaml · no such file (exit code 0)" in text(pilot))
        shutil.rmtree(new.run.path)
        await until(pilot, lambda: "birch" not in text(pilot))


async def test_open_and_back_and_leave(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started().epochs(1, 2, best=2)
    with fake.locked() as holder:
        app = cockpit()
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "amber" in text(pilot))
            await pilot.press("enter")
            await until(pilot, lambda: "TrLoss" in text(pilot))
            assert isinstance(app.screen, RunScreen)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, RunsScreen) and "Score" in text(pilot))
            await pilot.press("q")
        assert app.return_code == 0
        assert commands_of(fake) == []
        assert psutil.pid_exists(holder)


async def test_the_keys_steer_the_run_under_the_cursor(cockpit: Make, folder: Path) -> None:
    other = FakeRun(folder, "controls-20261127-100000-amber", created=1000.0).begin().started()
    this = FakeRun(folder, "controls-20261127-110000-birch", created=2000.0).begin().begin().started()
    with other.locked(), this.locked():
        async with cockpit().run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: keys(pilot).get("pause") and keys(pilot)["stop"])
            await pilot.press("p")
            await until(pilot, lambda: commands_of(this))
            this.say(ev.Phase(phase="paused", step=3))
            await until(pilot, lambda: keys(pilot).get("continue"))
            assert "pause" not in keys(pilot)
            await pilot.press("p", "s")
            await until(pilot, lambda: len(commands_of(this)) == 3)
    assert [type(order) for order in commands_of(this)] == [cmd.Pause, cmd.Continue, cmd.Stop]
    assert {order.attempt for order in commands_of(this)} == {2}
    assert commands_of(other) == []


async def test_resume_starts_it_again_and_only_what_can_be_resumed(
    cockpit: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = FakeRun(folder, "controls-20261127-110000-birch", created=2000.0).begin().started()
    stopped.end("stopped")
    foreign = FakeRun(folder, "script-20261127-100000-amber", created=1000.0).begin().end("finished")
    foreign.run.write_info(msgspec.structs.replace(foreign.run.info, engine=""))
    asked: list[RunDirectory] = []
    monkeypatch.setattr(launch, "prepare_resume", lambda run, overrides: (None, ["training.lr: 1 → 2, applied"]))
    monkeypatch.setattr(launch, "start", lambda run, changes: asked.append(run))
    async with cockpit().run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: keys(pilot).get("resume"))
        await pilot.press("r", "enter")
        await until(pilot, lambda: asked and "training.lr: 1 → 2, applied" in text(pilot))
        assert [run.path for run in asked] == [stopped.run.path]
        await pilot.press("down")
        await until(pilot, lambda: ">✓ finished" in text(pilot) and not keys(pilot)["resume"])
        await pilot.press("r")
        await until(pilot, lambda: "that program can resume it." in text(pilot))  # why it does nothing
    assert len(asked) == 1


async def test_a_resume_that_is_refused_says_why(cockpit: Make, fake: FakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(run: RunDirectory, overrides: list[str]) -> list[str]:
        raise UserError("[b]no[/] checkpoint")

    fake.begin().started().end("stopped")
    async with cockpit().run_test(size=(120, 30), notifications=True) as pilot:
        await until(pilot, lambda: keys(pilot).get("resume"))
        monkeypatch.setattr(launch, "prepare_resume", refuse)
        await pilot.press("r", "enter")
        await until(pilot, lambda: "[b]no[/] checkpoint" in text(pilot))
        assert keys(pilot)["resume"]


async def test_a_broken_run_is_shown_and_cannot_be_opened(cockpit: Make, fake: FakeRun) -> None:
    fake.run.info_file.write_text("{garbage")
    app = cockpit()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "! broken" in text(pilot))
        assert "run.json" in text(pilot)
        assert not keys(pilot)["open"]
        await pilot.press("enter", "p", "s", "r")
        assert isinstance(app.screen, RunsScreen)
        assert commands_of(fake) == []


async def test_names_are_neither_markup_nor_terminal_control(cockpit: Make, folder: Path) -> None:
    hostile = FakeRun(folder, "controls-20261127-110000-birch", label="[bold]x[/] \x1b[2J漢字 \x1b]0;t\x07").begin()
    hostile.end("failed", error="[link=x]y[/] \x1b[31m")
    async with cockpit().run_test(size=(160, 30)) as pilot:
        await until(pilot, lambda: "[bold]x[/] 漢字" in text(pilot))
        assert "\x1b" not in text(pilot)
        assert "[link=x]y[/]" in text(pilot)


async def test_a_thousand_runs_and_the_mouse(cockpit: Make, folder: Path) -> None:
    for number in range(200):
        FakeRun(folder, f"controls-20261127-{number:06d}-amber", created=float(number)).begin().end("finished")
    app = cockpit()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "200 done" in text(pilot))
        await pilot.press("end")
        await until(pilot, lambda: "000000-amber" in text(pilot))
        await pilot.press("home", "pagedown", "up")
        cursor = table(pilot).cursor
        assert cursor is not None
        assert "000000" < cursor.id[18:24] < "000199"
        await pilot.press("home")
        await pilot.click(RunsTable, offset=(30, 4))  # the third row below border and header
        await pilot.pause()
        cursor = table(pilot).cursor
        assert cursor is not None
        assert cursor.id[18:24] == "000197"
        assert isinstance(app.screen, RunsScreen)
        await pilot.double_click(RunsTable, offset=(30, 4))
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
