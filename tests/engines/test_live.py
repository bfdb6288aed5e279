"""A live session with time given from outside: its clock, its tape, its branches and its keys."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engines.contract.scenes import Action, Play, Press, Scene, Seek
from engines.tasks.live import MOST_PRESSES, Clock, Live, play_live
from tests.support.live_walk import State, Walk


class Table:
    """A live walk, who sits at it, and what it logs."""

    def __init__(self, session: Walk | None = None, longest: int = 1000) -> None:
        self.session = session or Walk()
        self.viewers: tuple[str, ...] = ("p1", "p2")
        self.lines: list[str] = []
        self.live = Live(self.session, lambda: self.viewers, self.lines.append, longest)
        self.now = 0.0
        self.live.advance(0.0)
        self.lines.clear()

    def press(self, action: str, viewer: str = "p1") -> None:
        self.live.obey(Press(action, viewer), self.now)

    def step(self, times: int = 1) -> Scene:
        for _ in range(times):
            self.press("on")
        return self.live.scene()

    def turns(self, seconds: float, turn: float) -> int:
        """Turns of `turn` seconds each; how many steps were made in them."""
        before = self.live.scene().total
        for _ in range(round(seconds / turn)):
            self.now += turn
            self.live.advance(self.now)
        return self.live.scene().total - before


@pytest.fixture
def table() -> Table:
    return Table()


def test_it_steps_at_its_rate_and_at_its_own_speeds(table: Table) -> None:
    assert table.turns(1.0, turn=1 / 256) == 0  # it begins paused
    table.press("play")
    assert table.turns(1.0, turn=1 / 256) == 32
    table.press("slower")
    assert table.turns(1.0, turn=1 / 256) == 16
    for _ in range(5):
        table.press("slower")
    assert table.live.scene().speed == 0.1
    assert table.turns(1.0, turn=1 / 256) == 3
    for _ in range(5):
        table.press("faster")
    assert table.live.scene().speed == 1.0


def test_a_late_turn_slows_the_clock_and_nothing_is_made_up_for(table: Table) -> None:
    table.press("play")
    assert table.turns(4.0, turn=1 / 16) == 64  # twice as slow as it should be: every turn is one step
    assert table.live.scene().reached == pytest.approx(0.5)
    table.now += 10.0  # the machine slept
    assert [table.live.advance(table.now) for _ in range(4)] == [True, False, False, False]
    assert table.turns(1.0, turn=1 / 256) == 32


def test_a_clock_that_keeps_up_says_so() -> None:
    clock = Clock(40.0, (0.5, 1.0), 0.5)
    clock.start(0.0)
    assert clock.reached == 0
    for number in range(1, 22):
        clock.tick(number * 0.05 + 0.01 * (number % 2))  # a little late now and then
    assert clock.reached == pytest.approx(0.5, rel=0.02)
    clock.choose(0.9, 2.0)
    assert (clock.speed, clock.reached, clock.due) == (1.0, 0.0, 2.025)


def test_a_key_reaches_the_next_step_with_its_viewer(table: Table) -> None:
    table.press("left", "p1")
    table.press("right", "p2")
    assert table.step().note == "p1 -1 p2 1"
    assert table.step(4).note == "p1 -5 p2 5"  # the session holds them down
    table.press("stand", "p2")
    assert table.step(2).note == "p1 -7 p2 5"
    table.press("no such key", "p2")
    assert table.step().note == "p1 -8 p2 5"


class Counting(Walk):
    """Keeps how many presses each step was given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[int] = []

    def step(self, state: State, presses: Sequence[Press], viewers: Sequence[str]) -> State:
        self.given.append(len(presses))
        return super().step(state, presses, viewers)


def test_of_many_presses_the_last_count() -> None:
    session = Counting()
    table = Table(session)
    for _ in range(3 * MOST_PRESSES):
        table.press("left")
    table.press("right")
    assert table.step(2).note == "p1 2 p2 0"
    assert session.given == [MOST_PRESSES, 0]


def test_the_past_can_be_gone_to_and_played_again(table: Table) -> None:
    table.press("right")
    table.step(50)
    for action, position in (("back", 49), ("leap-back", 29), ("start", 0), ("leap-on", 20), ("on", 21), ("end", 50)):
        table.press(action)
        scene = table.live.scene()
        assert (scene.position, scene.total, scene.note) == (position, 51, f"p1 {position} p2 0")
    for wanted, position in ((-3, 0), (10**9, 50), (48, 48)):
        table.live.obey(Seek(wanted), 0.0)
        assert table.live.scene().position == position
    assert not table.live.scene().playing
    table.live.obey(Play(True, 0.45), 0.0)
    assert table.live.scene().speed == 0.5
    table.turns(2 / 16, turn=1 / 16)  # the two that are on the tape
    assert (table.live.scene().position, table.live.scene().total) == (50, 51)
    table.turns(3 / 16, turn=1 / 16)  # then three new ones
    assert (table.live.scene().position, table.live.scene().note) == (53, "p1 53 p2 0")
    assert table.lines == []


def test_rewinding_and_acting_begins_a_branch(table: Table) -> None:
    table.press("right")
    table.step(10)
    table.press("left")  # dropped with the rewinding
    table.live.obey(Seek(4), 0.0)
    table.press("count")
    assert (table.session.counted, table.live.scene().total) == (5, 11)  # no act of a player: nothing is dropped
    table.press("left", "p2")
    scene = table.live.scene()
    assert (scene.position, scene.total, scene.note) == (4, 5, "p1 4 p2 0")
    assert table.lines == ["p2 branched off at step 4; 6 later steps dropped"]
    assert table.step(2).note == "p1 6 p2 -2"  # who walked at step 4 walks on


def test_restarting_begins_a_new_tape(table: Table) -> None:
    table.press("right")
    table.step(10)
    table.press("play")
    table.press("restart", "p2")
    scene = table.live.scene()
    assert (scene.position, scene.total, scene.playing, scene.note) == (0, 1, False, "p1 0 p2 0")
    assert table.session.begun == 2
    assert table.lines == ["p2 started again; 10 steps dropped"]


def test_a_long_tape_loses_its_oldest_states() -> None:
    table = Table(longest=10)
    table.press("right")
    table.step(30)
    table.press("start")
    scene = table.live.scene()
    assert (scene.position, scene.total, scene.note) == (21, 31, "p1 21 p2 0")
    table.press("left")
    assert table.step(3).note == "p1 18 p2 0"


def test_viewers_come_and_go(table: Table) -> None:
    table.press("right", "p1")
    table.press("right", "p2")
    table.press("play")
    table.turns(10 / 16, turn=1 / 16)
    table.viewers = ("p2",)
    table.turns(10 / 16, turn=1 / 16)
    scene = table.live.scene()
    assert (scene.playing, scene.viewers, scene.note) == (True, ["p2"], "p1 10 p2 20")
    assert table.lines == ["p1 left"]
    table.viewers = ()
    assert table.live.advance(table.now)
    assert table.turns(5.0, turn=1 / 16) == 0  # nobody plays
    table.viewers = ("p1",)
    table.live.advance(table.now)
    assert table.lines[1:] == ["p2 left", "p1 joined"]


@pytest.mark.parametrize(
    ("action", "fault"), [(Action("mine", "space", ""), "key 'space'"), (Action("play", "m", ""), "id 'play'")]
)
def test_keys_that_are_taken_are_a_fault_of_the_project(action: Action, fault: str) -> None:
    session = Walk()
    session.actions = (action,)
    with pytest.raises(ValueError, match=f"two actions of the session have the {fault}"):
        play_live(session, None)  # type: ignore[arg-type]
