"""What works on every screen, and the demo."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cockpit import app as module
from cockpit.app import CockpitApp
from cockpit.screens.help import HelpScreen
from cockpit.screens.run import RunScreen
from cockpit.screens.runs import RunsScreen
from cockpit.theme import variables
from engines.basics.errors import DataError
from engines.contract import events as ev
from engines.contract.rundir import RunDirectory
from tests.cockpit.driving import commands_of, text, until
from tests.support.fake_run import FakeRun

Make = Callable[..., CockpitApp]


@pytest.mark.behaviour("q-ctrl-c-cockpit")
@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_leaving_asks_nothing_and_touches_nothing(cockpit: Make, fake: FakeRun, key: str) -> None:
    fake.begin().started()
    with fake.locked():
        app = cockpit(open_run=fake.run)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "● running" in text(pilot))
            await pilot.press(key)
        assert app.return_code == 0
        assert commands_of(fake) == []


async def test_leaving_while_a_screen_is_built_is_no_fault(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started()
    app = cockpit()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "amber" in text(pilot))
        app.open_run(fake.run)
        app.action_leave()
    assert app.return_code == 0


async def test_what_is_typed_after_leaving_is_for_the_shell(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started()
    with fake.locked():
        app = cockpit(open_run=fake.run)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "● running" in text(pilot))
            app.action_leave()
            assert not await app.run_action("stop", app.screen)
        assert commands_of(fake) == []


async def test_help_tells_the_keys_of_the_screen_below(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started()
    with fake.locked():
        app = cockpit(open_run=fake.run)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "● running" in text(pilot))
            await pilot.press("question_mark")
            await until(pilot, lambda: "Pause before the next step" in text(pilot))
            assert "Continue from the pause" not in text(pilot)
            await pilot.press("end")
            await until(pilot, lambda: "Quit the cockpit; runs keep running" in text(pilot))
            assert "Other keys" in text(pilot)
            await pilot.press("question_mark")
            await until(pilot, lambda: isinstance(app.screen, RunScreen))
            await pilot.press("escape", "question_mark")
            await until(pilot, lambda: isinstance(app.screen, HelpScreen))
            assert "Start a run from a config" in text(pilot)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, RunsScreen))


@pytest.mark.behaviour("palette-shows-keys")
async def test_the_palette_offers_what_can_be_done_now_and_does_it(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started()
    with fake.locked():
        async with cockpit(open_run=fake.run).run_test(size=(100, 60)) as pilot:
            await until(pilot, lambda: "● running" in text(pilot))
            await pilot.press("ctrl+p")
            await until(pilot, lambda: "run: pause" in text(pilot))
            assert "run: stop" in text(pilot)
            line = next(line for line in text(pilot).splitlines() if "run: pause" in line)
            assert re.search(r"│ p +run: pause +Pause before the next step", line)  # the key beside each entry
            assert re.search(r"│ +Theme +Change the current theme", text(pilot))
            assert "run: resume" not in text(pilot)
            assert "run: continue" not in text(pilot)
            assert "show: charts" in text(pilot)
            await pilot.press(*"run: pause")
            await until(pilot, lambda: "run: stop" not in text(pilot))
            await pilot.press("enter")
            await until(pilot, lambda: commands_of(fake))

            await pilot.press("escape")
            await until(pilot, lambda: "1 run ·" in text(pilot))
            await pilot.press("ctrl+p")
            await until(pilot, lambda: "runs: open" in text(pilot))
            assert text(pilot).count("runs: mark all") == 1  # it has two keys
            assert "runs: up" not in text(pilot).lower()


async def test_another_theme_knows_our_colours_too(cockpit: Make, fake: FakeRun) -> None:
    fake.begin().started().epochs(1, best=1)
    app = cockpit(open_run=fake.run)
    async with app.run_test(size=(140, 40)) as pilot:
        await until(pilot, lambda: "★" in text(pilot))
        app.theme = "textual-light"
        await pilot.pause()
        assert app.theme_variables["train"] == variables(dark=False)["train"]
        assert "★" in text(pilot)


# -- the demo ------------------------------------------------------------------------------------------------------


class FakeDemo:
    """A demo whose data is made by `making` and whose training is `training`."""

    def __init__(self, making: FakeRun | None, training: FakeRun) -> None:
        self.making, self.training = making, training
        self.calls: list[str] = []
        self.fails = ""

    def data_run(self) -> RunDirectory | None:
        self.calls.append("data")
        return self.making.run if self.making else None

    def start(self) -> RunDirectory:
        if self.fails:
            raise DataError(self.fails)
        self.calls.append("start")
        return self.training.run


@pytest.fixture
def demo(folder: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDemo:
    monkeypatch.setattr(module, "DEMO_POLL_SECONDS", 0.05)
    making = FakeRun(folder, "controls-20261127-100000-birch", kind="task").begin()
    making.say(ev.Phase(phase="working"), ev.Progress(done=1, total=12, unit="sessions"))
    return FakeDemo(making, FakeRun(folder, "controls-20261127-110000-cedar").begin().started())


async def test_the_demo_shows_its_data_being_made_then_its_training(cockpit: Make, demo: FakeDemo) -> None:
    assert demo.making is not None
    app = cockpit(demo=demo)
    with demo.making.locked():
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "1 of 12 sessions" in text(pilot))
            assert demo.calls == ["data"]
            demo.making.end("finished")
            await until(pilot, lambda: "cedar" in text(pilot) and "TrLoss" in text(pilot))
            assert demo.calls == ["data", "start"]
            await pilot.press("escape")
            await until(pilot, lambda: "birch" in text(pilot) and "cedar" in text(pilot))


async def test_the_demo_does_not_pull_a_person_away_from_another_screen(cockpit: Make, demo: FakeDemo) -> None:
    assert demo.making is not None
    app = cockpit(demo=demo)
    with demo.making.locked():
        async with app.run_test(size=(80, 24), notifications=True) as pilot:
            await until(pilot, lambda: "1 of 12 sessions" in text(pilot))
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, RunsScreen))
            demo.making.end("finished")
            await until(pilot, lambda: "Demo data is ready" in text(pilot))
            assert isinstance(app.screen, RunsScreen)


async def test_a_demo_whose_data_cannot_be_made_trains_nothing(cockpit: Make, demo: FakeDemo) -> None:
    assert demo.making is not None
    app = cockpit(demo=demo)
    with demo.making.locked():
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "1 of 12 sessions" in text(pilot))
            demo.making.end("failed", exit_code=1, error="the disk is full")
            await until(pilot, lambda: "the disk is full" in text(pilot))
            await until(pilot, lambda: not app.workers)
    assert demo.calls == ["data"]


async def test_a_demo_with_data_trains_at_once_and_a_refusal_is_told(cockpit: Make, demo: FakeDemo) -> None:
    demo.making = None
    async with cockpit(demo=demo).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "cedar" in text(pilot) and "TrLoss" in text(pilot))
    demo.fails = "[b]data/x.npz[/] holds NaN"
    async with cockpit(demo=demo).run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "[b]data/x.npz[/] holds NaN" in text(pilot))
