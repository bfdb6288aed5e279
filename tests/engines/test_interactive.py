"""The clock and the keys of an interactive engine, with time given from outside, and the loop around them."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cockpit.core.scenes.play import PlayFollower, PlayNews, Viewing
from engines.contract import scenes
from engines.contract.rundir import RunDirectory
from engines.contract.scenes import Action, Scene, View
from engines.tasks import StopRequested, Table
from engines.tasks.interactive import Transport, play
from tests.engines.conftest import PATIENCE, wait_for


def test_positions_follow_the_clock_and_late_ones_are_skipped() -> None:
    transport = Transport(total=100, rate=20.0)
    transport.run(True, None, now=10.0)
    assert transport.due == pytest.approx(10.05)
    seen = []
    for now in (10.0, 10.04, 10.051, 10.1, 10.52):
        transport.advance(now)
        seen.append(transport.position)
    assert seen == [0, 0, 1, 2, 10]


def test_speed_changes_from_now_on_and_stays_between_its_limits() -> None:
    transport = Transport(total=1000, rate=10.0)
    transport.run(True, None, now=0.0)
    transport.advance(1.0)
    transport.press("faster", now=1.0)
    transport.advance(2.0)
    assert transport.position == 10 + 20
    for _ in range(5):
        transport.press("faster", now=2.0)
    assert transport.speed == 4.0
    for _ in range(9):
        transport.press("slower", now=2.0)
    assert transport.speed == 0.5
    transport.run(True, 1e300, now=2.0)
    assert transport.speed == 4.0


def test_it_stops_at_the_end_and_plays_from_the_start_again() -> None:
    transport = Transport(total=5, rate=1.0)
    transport.run(True, None, now=0.0)
    transport.advance(60.0)
    assert (transport.position, transport.playing, transport.due) == (4, False, None)
    transport.press("play", now=61.0)
    assert (transport.position, transport.playing) == (0, True)


@pytest.mark.parametrize(
    ("action", "position"),
    [("on", 51), ("back", 49), ("leap-on", 70), ("leap-back", 30), ("start", 0), ("end", 99), ("no such", 50)],
)
def test_steps(action: str, position: int) -> None:
    transport = Transport(total=100, rate=1.0)
    transport.seek(50)
    transport.run(True, None, now=0.0)
    transport.press(action, now=0.0)
    assert transport.position == position
    assert transport.playing == (action == "no such")


def test_nothing_leads_outside() -> None:
    transport = Transport(total=3, rate=1.0)
    for position, expected in ((-5, 0), (10**30, 2)):
        transport.seek(position)
        assert transport.position == expected


class Pages:
    """A session of ten pages; its action jumps to page 7, another one only counts."""

    total, rate = 10, 1000.0
    actions = (Action("jump", "j", "jump"), Action("count", "c", "count"))

    def __init__(self) -> None:
        self.counted = 0

    def act(self, action: str, position: int) -> int:
        self.counted += action == "count"
        return 7 if action == "jump" else position

    def scene(self, position: int) -> Scene:
        return Scene(title=f"page {position}", note=str(self.counted), view=View((0, 0), (1, 1)))


class Context:
    """Keeps the log; `stop` is what a stop command sets."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.stop = folder, False
        self.lines: list[str] = []

    def progress(self, done: int, total: int, unit: str) -> None:
        self.check()

    def check(self) -> None:
        if self.stop:
            raise StopRequested

    def log(self, text: str) -> None:
        self.lines.append(text)

    def report(self, tables: Mapping[str, Table]) -> None:
        raise NotImplementedError


def run_in_thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_viewer_steers_it_and_ends_it(tmp_path: Path) -> None:
    context = Context(tmp_path)
    engine = run_in_thread(lambda: play(Pages(), context))
    follower = PlayFollower(Viewing(RunDirectory(tmp_path)))

    def shown(condition: Callable[[Scene], bool]) -> Scene:
        def look() -> Scene | None:
            news: PlayNews = follower.poll(0.05)
            return news.scene if news.scene is not None and condition(news.scene) else None

        found: Scene = wait_for("a scene", look)
        return found

    first = shown(lambda scene: True)
    assert (first.title, first.position, first.total, first.playing) == ("page 0", 0, 10, False)
    assert {"play", "jump", "count"} <= {action.id for action in first.actions}
    follower.send(scenes.Seek(4))
    assert shown(lambda scene: scene.position == 4).title == "page 4"
    follower.send(scenes.Press("count"))
    assert shown(lambda scene: scene.note == "1").position == 4
    follower.send(scenes.Press("jump"))
    assert not shown(lambda scene: scene.position == 7).playing
    follower.send(scenes.Play(True, 2.0))
    assert shown(lambda scene: scene.position == 9 and not scene.playing).speed == 2.0
    follower.send(scenes.End())
    engine.join(PATIENCE)
    assert not engine.is_alive()
    assert context.lines[-1] == "ended by a viewer"
    follower.close()


def test_it_ends_when_nobody_looks(tmp_path: Path) -> None:
    context = Context(tmp_path)
    play(Pages(), context, idle_minutes=0.0)
    assert context.lines[-1] == "ended: no viewer for 0 minutes"
    assert not (tmp_path / scenes.SOCKET).exists()


def test_a_stop_ends_it(tmp_path: Path) -> None:
    context = Context(tmp_path)
    context.stop = True
    with pytest.raises(StopRequested):
        play(Pages(), context)
    assert not (tmp_path / scenes.SOCKET).exists()
