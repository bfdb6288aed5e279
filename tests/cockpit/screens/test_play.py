"""The Play screen over an engine of the tests: scenes in, keys out, and every end."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cockpit.app import CockpitApp
from cockpit.core.scenes.play import Viewing
from cockpit.screens import play as play_screen
from cockpit.screens.play import PlayScreen
from cockpit.screens.run import RunScreen
from cockpit.screens.runs import RunsScreen
from cockpit.widgets.cells_view import CellsView
from engines.contract import events as ev
from engines.contract import scenes
from engines.contract.scenes import Action, Gauge, Line, Panel, Scene, Span, Text, View, Words
from tests.cockpit.driving import commands_of, keys, text, until
from tests.support.fake_run import FakeRun
from tests.support.fake_scenes import FakeScenes, scene

Make = Callable[..., CockpitApp]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play_screen, "BYTES_PER_SECOND", 1e9)
    monkeypatch.setattr(play_screen, "LEAST_SECONDS", 0.01)


@pytest.fixture
def play(folder: Path) -> FakeRun:
    return FakeRun(folder, kind="task").begin().say(ev.Phase(phase="working"))


@pytest.fixture
def engine(play: FakeRun) -> Iterator[FakeScenes]:
    with play.locked(), FakeScenes(play, scene()) as engine:
        yield engine


async def test_a_scene_is_drawn_and_only_its_newest(cockpit: Make, play: FakeRun, engine: FakeScenes) -> None:
    async with cockpit(play=Viewing(play.run)).run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "frame 412/1,000  ×2" in text(pilot))
        shown = text(pilot)
        for words in ("Battlefield", "● playing", "seeded from game 7", "P1 Fox", "the stage", "shield", "345", "≠"):
            assert words in shown
        for position in range(500, 600):
            engine.show(scene(position, playing=False))
        await until(pilot, lambda: "frame 600/1,000" in text(pilot) and "‖ paused" in text(pilot))


async def test_the_engines_keys_are_in_footer_help_and_palette(
    cockpit: Make, play: FakeRun, engine: FakeScenes
) -> None:
    app = cockpit(play=Viewing(play.run))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "next ≠" in keys(pilot))
        footer = text(pilot).splitlines()[-1]
        assert "space play" in footer
        assert "end" not in footer.split()  # minor ones are in the help alone
        await pilot.press("space", "n", "end", "x")
        await until(pilot, lambda: len(engine.inputs) == 3)
        assert engine.inputs == [scenes.Press("play"), scenes.Press("next"), scenes.Press("end")]
        await pilot.press("question_mark")
        await until(pilot, lambda: "To the next difference" in text(pilot) and "To the end" in text(pilot))
        assert "the session ends" in text(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, PlayScreen))


async def test_a_click_on_the_timeline_goes_there(cockpit: Make, play: FakeRun, engine: FakeScenes) -> None:
    async with cockpit(play=Viewing(play.run)).run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "frame 412" in text(pilot))
        await pilot.click("#timeline", offset=(60, 1))
        await until(pilot, lambda: engine.inputs)
        (order,) = engine.inputs
        assert isinstance(order, scenes.Seek)
        assert 480 <= order.position <= 520


async def test_leaving_ends_the_engine(cockpit: Make, play: FakeRun, engine: FakeScenes) -> None:
    async with cockpit(play=Viewing(play.run)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "frame 412" in text(pilot))
        await pilot.press("q")
    assert engine.first_input() == scenes.End()


async def test_going_back_ends_the_engine(cockpit: Make, play: FakeRun, engine: FakeScenes) -> None:
    app = cockpit(play=Viewing(play.run))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "frame 412" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen) and engine.inputs)
    assert engine.inputs == [scenes.End()]


async def test_before_the_first_scene_it_shows_how_far_the_engine_is(cockpit: Make, play: FakeRun) -> None:
    with play.locked():
        play.say(ev.Progress(done=250, total=1000, unit="frames decided"))
        async with cockpit(play=Viewing(play.run)).run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "250 of 1,000 frames decided" in text(pilot))
            assert "◌ starting" in text(pilot)
            assert "██████████······························ 25 %" in text(pilot)
            await pilot.press("q")
        assert len(commands_of(play)) == 1  # nobody listens yet: it is stopped


async def test_how_the_engine_failed_is_told(cockpit: Make, play: FakeRun) -> None:
    play.run.stdout.write_text("loading\n\x1b[2JKeyError: [bold]x[/]\n")
    play.end("failed", exit_code=1, error="no such file")
    async with cockpit(play=Viewing(play.run)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "✖ failed" in text(pilot) and "KeyError: [bold]x[/]" in text(pilot))
        assert "no such file" in text(pilot)
        assert "press escape to go back" in text(pilot)


async def test_an_engine_that_has_ended_leaves_its_last_scene(cockpit: Make, play: FakeRun) -> None:
    async with cockpit(play=Viewing(play.run)).run_test(size=(80, 24)) as pilot:
        with play.locked(), FakeScenes(play, scene()):
            await until(pilot, lambda: "frame 412" in text(pilot))
        play.run.stdout.write_text("ended: no viewer for 10 minutes\n")
        play.end("finished", exit_code=0)
        await until(pilot, lambda: "✓ finished" in text(pilot))
        assert "P1 Fox" in text(pilot)
        assert "no viewer for 10 minutes. press escape to go back" in text(pilot)


async def test_hostile_scenes_are_text_and_bind_no_key_of_ours(cockpit: Make, play: FakeRun) -> None:
    evil = "\x1b]0;owned\x07[bold red]x[/]\x9b2J"
    hostile = Scene(
        title=evil, note=evil, unit=evil, total=-5, position=-7, speed=1e308,
        view=View((0, 0), (1, 1), [Text(0.5, 0.5, evil), Line([(1e308, 1e308), (0, 0)])], title=evil),
        panels=[Panel(evil, [Words([Span(evil)]), Gauge(label=evil, value=1e308, mark=-1e308)], note=evil)] * 20,
        actions=[
            Action("quit", "q", "steal"), Action("a'); self.exit('", "a", "run"), Action("bad", "ctrl+c,escape", "x"),
            Action("fine", "q,f", evil, evil), Action("press", "question_mark", "x"),
        ],
    )  # fmt: skip
    app = cockpit(play=Viewing(play.run))
    with play.locked(), FakeScenes(play, hostile) as engine:
        async with app.run_test(size=(100, 40)) as pilot:
            await until(pilot, lambda: "[bold red]x[/]" in text(pilot))
            assert not any(ord(character) < 32 and character != "\n" for character in text(pilot))
            await pilot.press("a", "f", "question_mark")
            await until(pilot, lambda: engine.inputs == [scenes.Press("fine")] and "Keys" in text(pilot))
            await pilot.press("escape", "q")
        assert engine.inputs[-1] == scenes.End()


async def test_what_did_not_change_is_not_drawn_again(
    cockpit: Make, play: FakeRun, engine: FakeScenes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cockpit(play=Viewing(play.run)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "frame 412" in text(pilot))
        drawn: list[str] = []
        original = CellsView.refresh

        def note(self: CellsView, *regions: Any, **options: Any) -> Any:
            drawn.append(f"{self.id} {[region.y for region in regions]}")
            return original(self, *regions, **options)

        monkeypatch.setattr(CellsView, "refresh", note)
        engine.show(scene(411, note="one word"))
        await until(pilot, lambda: "one word" in text(pilot))
        assert drawn == []
        engine.show(scene(462, note="two words"))
        await until(pilot, lambda: "two words" in text(pilot))
        assert drawn
        assert all(line.startswith(("world [", "timeline [")) and not line.endswith("[]") for line in drawn)


async def test_a_live_session_says_who_plays_how_fast_and_where_on_the_tape(
    cockpit: Make, play: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.fake_scenes.SEATS", ("p1", "p2"))
    live = {"live": True, "viewers": ["p1", "p2"], "note": ""}
    newest, behind, slow = (msgspec.structs.replace(scene(position), **live) for position in (999, 411, 999))
    slow.reached = 0.4
    app = cockpit(play=Viewing(play.run, "p2"))
    with play.locked(), FakeScenes(play, newest) as engine:
        async with app.run_test(size=(100, 30)) as pilot:
            await until(pilot, lambda: "● live  frame 1,000  ×2  p1 p2 (you)" in text(pilot))
            engine.show(behind)
            await until(pilot, lambda: "● playing  frame 412/1,000  ×2  p1 p2 (you)" in text(pilot))
            engine.show(slow)
            await until(pilot, lambda: "● live  frame 1,000  ×2, reaches ×0.4  p1 p2 (you)" in text(pilot))
            await pilot.press("n")
            await until(pilot, lambda: engine.inputs == [scenes.Press("next", "p2")])


async def test_who_has_no_seat_is_told_that_it_watches(
    cockpit: Make, play: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.fake_scenes.SEATS", ("p1",))
    shown = scene(999, note="")
    shown.live, shown.viewers = True, ["p1"]
    app = cockpit(play=Viewing(play.run, "[bold]p9"))
    with play.locked(), FakeScenes(play, shown) as engine:
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "watching p1" in text(pilot) and "This session has no '[bold]p9'" in text(pilot))
            await pilot.press("n", "q")
        assert engine.first_input() == scenes.End()


async def test_ascii_has_nothing_else(cockpit: Make, play: FakeRun, engine: FakeScenes) -> None:
    async with cockpit(play=Viewing(play.run), ascii_only=True).run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: "frame 412" in text(pilot) and "P2 Falco" in text(pilot))
        arrows = str.maketrans("←→↑↓", "    ")  # Textual's names of keys
        assert [line for line in text(pilot).translate(arrows).splitlines() if not line.isascii()] == []


async def test_it_opens_from_the_run_that_has_an_export_and_goes_back_there(
    cockpit: Make, folder: Path, play: FakeRun, engine: FakeScenes, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = FakeRun(folder, "controls-20261127-201400-birch").begin().started().epochs(1, 2)
    training.end("finished", exit_code=0)
    monkeypatch.setattr("cockpit.core.scenes.play.open_play", lambda run: Viewing(play.run))
    monkeypatch.setattr("cockpit.screens.run.MACHINE_SECONDS", 0.05)
    app = cockpit(open_run=training.run)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and "✓ finished" in text(pilot))
        assert "play" not in keys(pilot)
        (training.run.export / "control_policy_v2.pt").write_bytes(b"x")
        await until(pilot, lambda: keys(pilot).get("play"))
        await pilot.press("y")
        await until(pilot, lambda: "frame 412" in text(pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and app.screen.run.path == training.run.path)
