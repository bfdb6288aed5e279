"""Games of the arena as `cockpit data make agent` writes them: exact files, odds that are right, the same bytes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from engines.basics.errors import DataError, UserError
from engines.tasks import StopRequested
from projects.agent.demo.arena import State
from projects.agent.demo.expert import EXPERT, Mind
from projects.agent.demo.odds import COPIES, event_odds, read_odds
from projects.agent.demo.picture import CHANNELS
from projects.agent.demo.record import Game, record
from projects.agent.demo.task import make
from projects.agent.layout import EVENT_GOLD, NONE
from projects.agent.league import reads
from projects.agent.recordings import read_recording, read_recordings
from tests.projects.controls.task_context import Listener

ORDER = {"games": 3, "frames": 60, "seed": 5}


GAMES = 4


@cache
def played(number: int) -> Game:
    """A game that several tests look at."""
    return record(1, number, 300)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}


def test_a_recording_is_the_game_that_was_played(tmp_path: Path) -> None:
    make({"out": str(tmp_path), **ORDER}, Listener())
    assert reads(tmp_path) == ""
    for number in range(3):
        game = record(5, number, 60)
        one = read_recording(tmp_path, f"demo_{number:03d}")
        assert one.first == 100 + 37 * number
        np.testing.assert_array_equal(one.movement, game.features.movement)
        np.testing.assert_array_equal(one.abilities, game.features.abilities)
        np.testing.assert_array_equal(one.latents, game.latents.astype(np.float16))
        assert one.rewards.known.sum() == 60 - 8
        odds = read_odds(tmp_path, one.name, 60)
        assert odds is not None
        np.testing.assert_array_equal(odds.event, game.odds.event.astype(np.float32))
        assert (np.take_along_axis(odds.movement, one.movement.astype(int)[:, None], 1) > 0).all()
        np.testing.assert_array_equal(odds.event[one.rewards.known, 0] > 0, one.rewards.event[one.rewards.known])


def test_deaths_of_the_bar_are_those_of_the_arena() -> None:
    """The frame of a death is the one whose life is below 0 for the first time."""
    deaths = 0
    for number in range(GAMES):
        game = played(number)
        gone = np.isnan(game.features.bar).any(axis=1) | (game.features.bar == 0).all(axis=1)
        begins = np.flatnonzero(gone[1:] & ~gone[:-1]) + 1
        life = game.latents[:, CHANNELS.index("life"), 0, 0]
        assert (np.flatnonzero((life[1:] < 0) & (life[:-1] > 0)) + 1).tolist() == begins.tolist()
        deaths += len(begins)
    assert deaths > 4


def test_odds_of_events_are_how_often_they_come() -> None:
    """One step before gold with q at .85; and a hunter so near that its player dies for certain."""
    state = State(
        player=np.array([[1.5, 1.5], [1.5, 1.5]]), life=np.array([1.0, -0.3]),
        hunter=np.array([[0.05, 0.05], [1.45, 1.5]]), gold=np.array([[2.1, 1.5], [1.5, 2.6]]),
        amount=np.array([40, 40]), dead=np.array([0, 19]), taken=np.zeros((2, 3)), frame=np.array([0, 0]),
    )  # fmt: skip
    mind = Mind(np.array([0, NONE]), np.zeros(2, bool), np.zeros(2, bool), np.array([-1, -1]))
    odds = event_odds(state, mind, EXPERT, np.random.default_rng(0), copies=2000)
    reach = 0.98 + 0.02 * 3 / 7  # it goes there, or strays there by chance
    assert odds[0, 0] == pytest.approx(EXPERT.presses * reach, abs=0.01)
    assert odds[0, 1] == pytest.approx(0.85, abs=0.05)
    assert odds[0].sum() > 0.95
    assert not odds[1].any()
    state.dead[1] = 0
    state.life[1] = 0.02
    assert event_odds(state, mind, EXPERT, np.random.default_rng(0), copies=200)[1, 0] == 1


def test_odds_of_recorded_games_are_calibrated() -> None:
    """As many events come 4 frames later as the odds say, also where they are high."""
    said, came = [], []
    for number in range(GAMES):
        odds = played(number).odds.event
        said.append(odds[:-4, 4])
        came.append(odds[4:, 0] > 0)
    chance, event = np.concatenate(said), np.concatenate(came)
    assert chance.mean() == pytest.approx(event.mean(), abs=0.02)
    high = chance > 0.7
    assert high.sum() > 30
    assert chance[high].mean() == pytest.approx(event[high].mean(), abs=0.12)
    assert COPIES >= 32


def test_stopped_and_started_again_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    make({"out": str(tmp_path / "whole"), **ORDER}, Listener())
    with pytest.raises(StopRequested):
        make({"out": str(tmp_path / "parts"), **ORDER}, Listener(stop_at=2))
    make({"out": str(tmp_path / "parts"), **ORDER}, Listener())
    assert content(tmp_path / "parts") == content(tmp_path / "whole")
    assert len(content(tmp_path / "whole")) == 3 * 3 + 1


def test_more_games_can_be_added_and_bad_orders_are_refused(tmp_path: Path) -> None:
    make({"out": str(tmp_path), **ORDER, "games": 2}, Listener())
    make({"out": str(tmp_path), **ORDER}, Listener())
    assert len(read_recordings(tmp_path, lambda done, total: None)) == 3
    with pytest.raises(UserError, match="games is 1, expected a whole number"):
        make({"out": str(tmp_path / "a"), "games": 1}, Listener())
    with pytest.raises(DataError, match="was made with frames 60, not 200"):
        make({"out": str(tmp_path), **ORDER, "frames": 200}, Listener())


def test_damaged_odds_are_said(tmp_path: Path) -> None:
    make({"out": str(tmp_path), **ORDER, "games": 2}, Listener())
    path = tmp_path / "odds" / "demo_001.npz"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(DataError, match=r"demo_001\.npz: damaged"):
        read_odds(tmp_path, "demo_001", 60)
    with pytest.raises(DataError, match=r"event has shape \(60, 9\), its game needs \(99, 9\)"):
        read_odds(tmp_path, "demo_000", 99)
    assert read_odds(tmp_path, "demo_009", 60) is None


def test_an_event_in_the_odds_is_gold_of_10_or_a_death() -> None:
    game = played(0)
    happened = game.odds.event[:, 0] > 0
    life = game.latents[:, CHANNELS.index("life"), 0, 0]
    died = (life < 0) & (np.append(1, life[:-1]) > 0)
    expected = (game.features.gold >= EVENT_GOLD) | died
    assert happened.tolist() == expected.tolist()
