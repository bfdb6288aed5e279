"""Looks, keys, clipboard and title: as the person has chosen, as the terminal can, kept for the next time."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from cockpit import terminal_app, title
from cockpit.app import CockpitApp
from cockpit.core.settings import SettingsFile
from cockpit.screens.help import HelpScreen
from cockpit.theme import variables
from engines.contract import events as ev
from tests.cockpit.driving import commands_of, keys, text, until
from tests.support.fake_run import FakeRun

Make = Callable[..., CockpitApp]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def running(fake: FakeRun) -> FakeRun:
    return fake.begin().started().epochs(1, 2, best=2)


# -- the look ------------------------------------------------------------------------------------------------------


async def test_a_theme_is_remembered(cockpit: Make, settings: SettingsFile, fake: FakeRun) -> None:
    app = cockpit()
    async with app.run_test(size=(80, 24)) as pilot:
        assert app.theme == "cockpit-dark"
        await pilot.press("ctrl+p", *"Theme")
        await until(pilot, lambda: "Change the current theme" in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "cockpit-light" in text(pilot))
        await pilot.press(*"cockpit-light")
        await until(pilot, lambda: "textual-dark" not in text(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: SettingsFile(settings.path).value.theme == "cockpit-light")
        assert app.theme_variables["quiet"] == variables(dark=False)["quiet"]
    assert CockpitApp(settings=SettingsFile(settings.path)).theme == "cockpit-light"


async def test_an_unknown_theme_falls_back_and_is_named(cockpit: Make) -> None:
    app = cockpit(theme="solarised")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "'solarised'" in text(pilot))
        assert app.theme == "cockpit-dark"


async def test_damaged_settings_are_told(cockpit: Make, settings: SettingsFile) -> None:
    settings.path.write_text("{")
    app = cockpit(settings=SettingsFile(settings.path))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "cannot be read" in text(pilot))


@pytest.mark.behaviour("terminal-cannot-show-more")
@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_ascii_is_all_there_is(cockpit: Make, running: FakeRun, size: tuple[int, int]) -> None:
    running.run.stdout.write_text("größer als → 夏 ▇▇ \u2800⣿ Ⅳ\n")
    with running.locked():
        async with cockpit(open_run=running.run, ascii_only=True).run_test(size=size, notifications=True) as pilot:
            await until(pilot, lambda: "* running" in text(pilot) and "0.200" in text(pilot))
            await pilot.press("question_mark")
            await until(pilot, lambda: "Save and stop after this step" in text(pilot))
            assert text(pilot).isascii()
            await pilot.press("escape", "ctrl+p")
            await until(pilot, lambda: "run: pause" in text(pilot))
            assert text(pilot).isascii()
            await pilot.press("escape", "escape")
            await until(pilot, lambda: "enter open" in text(pilot))
            assert text(pilot).isascii()
            assert {len(line) for line in text(pilot).splitlines()} == {size[0]}


async def test_ascii_is_chosen_in_the_palette_at_once_and_remembered(
    cockpit: Make, settings: SettingsFile, running: FakeRun
) -> None:
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "amber" in text(pilot))
        assert not text(pilot).isascii()
        for words, expected in (("ASCII only", True), ("All characters", False)):
            await pilot.press("ctrl+p", *words)
            await until(pilot, lambda: "Draw with ASCII" in text(pilot))
            await pilot.press("enter")
            await until(pilot, lambda expected=expected: text(pilot).isascii() is expected)  # type: ignore[misc]
            await until(
                pilot,
                lambda expected=expected: SettingsFile(settings.path).value.ascii is expected,  # type: ignore[misc]
            )


@pytest.mark.behaviour("terminal-cannot-show-more")
def test_no_sign_of_ours_is_wider_than_a_cell() -> None:
    """Every character in the cockpit's own source: terminals disagree on the width of wide ones and of emoji."""
    files = [path for kind in ("*.py", "*.tcss") for path in (ROOT / "cockpit").rglob(kind)]
    ours = {character for path in files for character in path.read_text() if not character.isascii()}
    ours -= set("Ａé")  # examples in docstrings
    assert len(ours) > 30
    odd = [
        it for it in ours if cell_len(it) != 1 or unicodedata.east_asian_width(it) in "WF" or unicodedata.combining(it)
    ]
    assert odd == []


@pytest.mark.behaviour("tmux-screen-xterm-dumb")
async def test_without_colour_the_cursor_and_every_state_are_still_seen(
    cockpit: Make, folder: Path, running: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    FakeRun(folder, "controls-20261126-201400-ember").begin().started().end("failed", exit_code=1)
    with running.locked():
        async with cockpit().run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "✖ failed" in text(pilot) and "● running" in text(pilot))
            strips = pilot.app.screen._compositor.render_strips()
            colours = {
                colour.triplet for strip in strips for it in strip if it.style for colour in (it.style.color,) if colour
            }
            assert all(triplet and len(set(triplet)) == 1 for triplet in colours), colours  # greys
            lines = [line for line in text(pilot).splitlines() if "ember" in line or "amber" in line]
            assert [("> " in line or ">●" in line or ">✖" in line) for line in lines].count(True) == 1


# -- the keys ------------------------------------------------------------------------------------------------------


async def test_a_key_chosen_in_the_settings_works_and_is_shown(
    cockpit: Make, settings: SettingsFile, running: FakeRun
) -> None:
    settings.change(keys={"run.stop": "f8", "run.pause": "f9", "play.step": "x"})
    with running.locked():
        app = cockpit(open_run=running.run)
        async with app.run_test(size=(80, 24), notifications=True) as pilot:
            await until(pilot, lambda: "f8 stop" in text(pilot) and "● running" in text(pilot))
            assert keys(pilot)["pause"]
            assert "f9 pause" in text(pilot)
            assert "No key" not in text(pilot)
            await pilot.press("s")
            await pilot.press("question_mark")
            await until(pilot, lambda: isinstance(app.screen, HelpScreen))
            assert "f8  Save and stop after this step" in text(pilot)
            assert commands_of(running) == []
            await pilot.press("escape", "f8")
            await until(pilot, lambda: [type(it).__name__ for it in commands_of(running)] == ["Stop"])


async def test_pause_may_move_alone_and_continue_stays(cockpit: Make, settings: SettingsFile, running: FakeRun) -> None:
    settings.change(keys={"run.pause": "f9"})
    with running.locked():
        async with cockpit(open_run=running.run).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "f9 pause" in text(pilot))
            await pilot.press("f9")
            await until(pilot, lambda: [type(it).__name__ for it in commands_of(running)] == ["Pause"])
            running.say(ev.Phase(phase="paused"))
            await until(pilot, lambda: "p continue" in text(pilot))


@pytest.mark.behaviour("keys-that-no-terminal-sends")
async def test_unknown_ids_no_keys_and_clashes_are_told_once(cockpit: Make, settings: SettingsFile) -> None:
    settings.change(
        keys={"run.stpo": "f8", "runs.mark": "foo", "runs.order": "ctl+t,+", "run.stop": "q", "run.pause": "hyper+z"}
    )
    async with cockpit().run_test(size=(120, 50), notifications=True) as pilot:
        await until(pilot, lambda: "did you mean 'run.stop'" in text(pilot))
        await until(pilot, lambda: "'foo' for runs.mark is not a key" in text(pilot))
        await until(pilot, lambda: "'hyper+z' for run.pause is not a key" in text(pilot))
        await until(pilot, lambda: "'ctl+t' for runs.order is not a key" in text(pilot))
        assert "'plus'" not in text(pilot)
        await until(pilot, lambda: "q is bound to both cockpit.leave and run.stop" in text(pilot).replace("\n", ""))


# -- the clipboard -------------------------------------------------------------------------------------------------


async def test_copy_takes_the_run_under_the_cursor(cockpit: Make, folder: Path, running: FakeRun) -> None:
    app = cockpit()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "amber" in text(pilot))
        await pilot.press("ctrl+y")
        await until(pilot, lambda: "copied" in text(pilot) and app.clipboard)
        assert app.clipboard == running.run.path.name


@pytest.mark.behaviour("greyed-keys-say-why")
async def test_where_nothing_can_be_copied_that_is_said(
    cockpit: Make, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cockpit().run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "No runs yet" in text(pilot))
        await pilot.press("ctrl+y")
        await until(pilot, lambda: "Nothing to copy here" in text(pilot))


@pytest.mark.behaviour("copied-with-header")
async def test_tables_are_copied_as_markdown_and_charts_as_they_are(cockpit: Make, running: FakeRun) -> None:
    running.run.report.write_text(
        json.dumps({"tables": {name: {"columns": ["head", "F1"], "rows": [["look|x", 0.5]]} for name in "ab"}})
    )
    running.epochs(1, 2, best=2)
    app = cockpit(open_run=running.run)
    with running.locked():
        async with app.run_test(size=(80, 24), notifications=True) as pilot:
            copied: dict[str, str] = {}
            for key, shown in (("1", "0.500"), ("2", "Step"), ("3", "by step"), ("6", "look|x")):
                await pilot.press(key)
                await until(pilot, lambda shown=shown: shown in text(pilot) and app.focused)  # type: ignore[misc]
                await pilot.press("ctrl+y")
                await until(pilot, lambda key=key: app.clipboard not in copied.values())  # type: ignore[misc]
                copied[key] = app.clipboard
    assert copied["1"].splitlines()[0] == "| Ep | TrLoss | Act | VlF1 | Score | LR |"
    assert copied["1"].splitlines()[3] == "| 2 | 0.500 | 0.500 | 0.250 | 0.200 | 5.0e-4 |"
    assert copied["2"].splitlines()[0].startswith("| Ep | Step | TrLoss |")
    assert copied["3"].splitlines()[0].startswith("╭─ score")
    assert copied["6"].splitlines() == ["| head | F1 |", "| --- | --- |", r"| look\|x | 0.5000 |"]


async def test_what_is_copied_steers_no_terminal(
    cockpit: Make, running: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = cockpit()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "amber" in text(pilot))
        assert app.focused
        monkeypatch.setattr(app.focused, "copyable", lambda: "one\x1b]52;c;AAAA\x07\ntwo\x07", raising=False)
        await pilot.press("ctrl+y")
        await until(pilot, lambda: "copied 2 lines" in text(pilot))
        assert app.clipboard == "one\ntwo"


# -- the title -----------------------------------------------------------------------------------------------------


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is sent past the picture, at once."""
    sent: list[str] = []
    monkeypatch.setattr(title, "write", lambda app, sequence: sent.append(sequence))
    monkeypatch.setattr(terminal_app, "TITLE_SECONDS", 0.05)
    monkeypatch.setenv("TERM", "xterm-256color")
    return sent


async def test_the_title_tells_the_run_and_is_given_back(cockpit: Make, running: FakeRun, written: list[str]) -> None:
    with running.locked():
        async with cockpit(open_run=running.run).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "\x1b]0;amber 2/4 . cockpit\x07" in "".join(written))
            await pilot.press("escape")
            await until(pilot, lambda: written[-1] == "\x1b]0;cockpit . 1 running\x07")
            count = len(written)
            await _ticks(pilot)
            assert len(written) == count  # nothing changed
    assert written[0].startswith("\x1b[22;0t")
    assert written[-1] == "\x1b]0;\x07\x1b[23;0t"


@pytest.mark.parametrize("term", ["dumb", "linux"])
async def test_terminals_that_would_print_a_title_get_none(
    cockpit: Make, running: FakeRun, written: list[str], monkeypatch: pytest.MonkeyPatch, term: str
) -> None:
    monkeypatch.setenv("TERM", term)
    async with cockpit().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "amber" in text(pilot))
        await _ticks(pilot)
    assert written == []


async def _ticks(pilot: Pilot[None]) -> None:
    """Until the title would have been written a few times more."""
    ticks: list[None] = []
    pilot.app.set_interval(terminal_app.TITLE_SECONDS, lambda: ticks.append(None))
    await until(pilot, lambda: len(ticks) > 3)
