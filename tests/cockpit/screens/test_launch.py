"""Choosing a config: by project, by path, from defaults alone; what cannot be opened says why."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from cockpit.app import CockpitApp
from cockpit.core.config import configs
from cockpit.screens.launch import LaunchScreen
from cockpit.screens.launch_form import LaunchFormScreen
from engines.contract import spec as specs
from engines.contract.spec import BrokenSpec
from tests.cockpit.driving import text, until

Make = Callable[..., CockpitApp]


def shows(pilot: Pilot[None], words: str) -> bool:
    return words in text(pilot)


@pytest.fixture
def config_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two configs, the only ones there are."""
    folder = tmp_path / "configs"
    folder.mkdir()
    (folder / "large.yaml").write_text("# Takes a night\nproject: controls\ndata: {path: x}\n")
    (folder / "small.yaml").write_text("# Takes a minute\nproject: controls\ndata: {path: x}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(configs, "SHIPPED", tmp_path / "none")
    return folder


async def test_a_config_is_chosen_and_left_again(cockpit: Make, config_folder: Path) -> None:
    app = cockpit()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "Takes a minute" in text(pilot))
        assert "large.yaml" in text(pilot)
        await pilot.press("down", "enter")
        await until(pilot, lambda: "small.yaml" in text(pilot) and "no changes" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "large.yaml" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: "No runs yet" in text(pilot))


async def test_a_wide_screen_shows_the_file(cockpit: Make, config_folder: Path) -> None:
    async with cockpit().run_test(size=(140, 30)) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "data: {path: x}" in text(pilot))


async def test_a_broken_project_says_why_and_one_without_configs_offers_its_defaults(
    cockpit: Make, config_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (config_folder / "small.yaml").write_text("project: gone\n")
    (config_folder / "large.yaml").write_text("nothing: here\n")
    broken = BrokenSpec("third", "ImportError: no [b]module[/b]")
    monkeypatch.setattr(specs, "installed", lambda: {"controls": specs.find("controls"), "third": broken})
    app = cockpit()
    async with app.run_test(size=(110, 30)) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "ImportError: no [b]module[/b]" in text(pilot))
        assert "project not installed" in text(pilot)
        assert "no project named" in text(pilot)
        await pilot.press("enter")  # the first that can be chosen
        await until(pilot, lambda: "not saved yet" in text(pilot))
        await until(pilot, lambda: "data is missing" in text(pilot))
        assert isinstance(app.screen, LaunchFormScreen)


async def test_what_cannot_be_opened_says_why(cockpit: Make, config_folder: Path) -> None:
    told = {"project: contrils\n": "did you mean 'controls'", "a: [\n": "bad1.yaml:2", "- a\n": "expected sections"}
    shutil.rmtree(config_folder)
    for number, content in enumerate(told):
        (config_folder.parent / f"bad{number}.yaml").write_text(content)
    app = cockpit()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "new from defaults" in text(pilot))
        await pilot.press("slash")
        for number, words in enumerate(told.values()):
            app.screen.query_one(Input).value = f"bad{number}.yaml"
            await pilot.press("enter")
            await until(pilot, partial(shows, pilot, words))
        assert isinstance(app.screen, LaunchScreen)


async def test_a_path_is_typed_with_any_letters(cockpit: Make, config_folder: Path) -> None:
    app = cockpit()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: "Takes a minute" in text(pilot))
        await pilot.press("slash", *"qspn?[b].yaml")
        assert app.screen.query_one(Input).value == "qspn?[b].yaml"
        await pilot.press("enter")
        await until(pilot, lambda: "no such config file" in text(pilot))
        assert "qspn?[b].yaml" in text(pilot)
        await pilot.press("escape", "down", "enter")  # back in the list
        await until(pilot, lambda: "no changes" in text(pilot))
