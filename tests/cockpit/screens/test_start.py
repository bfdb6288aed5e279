"""Starting a run from a config: chosen or typed, refused with every fault, never twice."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.widgets import Input, OptionList

from cockpit.app import CockpitApp
from cockpit.core import configs
from cockpit.screens.run import RunScreen
from cockpit.screens.start import StartScreen
from engines.contract import launch
from engines.contract.errors import UserError
from engines.contract.rundir import RunDirectory
from tests.cockpit.driving import text, until
from tests.support.fake_run import FakeRun

Make = Callable[..., CockpitApp]


@pytest.fixture
def config_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two configs, the only ones there are."""
    folder = tmp_path / "configs"
    folder.mkdir()
    (folder / "large.yaml").write_text("# Takes a night\nproject: controls\n")
    (folder / "small.yaml").write_text("# Takes a minute\nproject: controls\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(configs, "SHIPPED", tmp_path / "none")
    return folder


async def test_a_config_is_chosen_checked_started_and_opened(
    cockpit: Make, fake: FakeRun, config_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def prepare(config: Path) -> RunDirectory:
        asked.append(config)
        return fake.run

    monkeypatch.setattr(launch, "prepare_training", prepare)
    monkeypatch.setattr(launch, "start", lambda run: fake.begin().started())
    app = cockpit()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "Takes a minute" in text(pilot))
        assert "large.yaml" in text(pilot)
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and "amber" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "Spent" in text(pilot) and "amber" in text(pilot))
    assert [config.name for config in asked] == ["small.yaml"]


async def test_every_fault_is_shown_in_place(cockpit: Make, config_folder: Path) -> None:
    (config_folder / "bad.yaml").write_text(
        "project: controls\ntraining:\n  epochz: 3\n  lr: [fast]\ndata: {path: x}\n"
    )
    app = cockpit()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "bad.yaml" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "training.epochz" in text(pilot))
        assert "did you mean 'epochs'?" in text(pilot)
        assert "training.lr" in text(pilot)
        assert isinstance(app.screen, StartScreen)
        await pilot.press("escape")
        await until(pilot, lambda: "No runs yet" in text(pilot))


async def test_a_path_is_typed_with_any_letters(cockpit: Make, config_folder: Path) -> None:
    app = cockpit()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: app.screen.query_one(OptionList).option_count == 2)
        await pilot.press("tab", *"qspn?[b].yaml")
        assert app.screen.query_one(Input).value == "qspn?[b].yaml"
        await pilot.press("enter")
        await until(pilot, lambda: "there is no such config file" in text(pilot))
        assert "qspn?[b].yaml" in text(pilot)


async def test_pressing_again_while_it_starts_starts_nothing_more(
    cockpit: Make, fake: FakeRun, config_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    go_on = threading.Event()

    def prepare(config: Path) -> RunDirectory:
        asked.append(config)
        go_on.wait(30)
        raise UserError("the output directory is occupied")

    monkeypatch.setattr(launch, "prepare_training", prepare)
    app = cockpit()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "Takes a minute" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "checking and starting" in text(pilot) and asked)
        await pilot.press("enter", "enter")
        go_on.set()
        await until(pilot, lambda: "the output directory is occupied" in text(pilot))
        assert len(asked) == 1
        await pilot.press("enter")  # and after a refusal it can be tried again
        await until(pilot, lambda: len(asked) == 2)


async def test_without_configs_a_path_is_asked_for(cockpit: Make, config_folder: Path) -> None:
    shutil.rmtree(config_folder)
    app = cockpit()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "path of a config" in text(pilot))
        assert isinstance(app.focused, Input)
