"""`cockpit data make melee`: a store like that of replays, the same whatever interrupted it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engines.basics.errors import DataError, UserError
from engines.tasks import StopRequested
from projects.melee.demo.match import play
from projects.melee.demo.task import make
from projects.melee.games import GameWindows, complete_games
from projects.melee.store import Store
from tests.projects.controls.task_context import Listener

ORDER = {"games": 3, "minutes": 0.25}


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_it_makes_a_store_that_a_model_learns_from(tmp_path: Path) -> None:
    context = Listener()
    make({"out": str(tmp_path), **ORDER}, context)
    store = Store(tmp_path)
    games, lacking = complete_games(store)
    assert ([placed.game.name for placed in games], lacking) == (["demo_000", "demo_001", "demo_002"], {})
    frames, items = store.game(1)
    made = play(0, 1, 900)
    assert frames.tobytes() == made.frames.tobytes()
    assert items.tobytes() == made.items.tobytes()
    windows = GameWindows(store, games, 20, 2, torch.device("cpu"))
    assert len(windows) == 3 * (900 - 19)
    batch = windows.batch(torch.tensor([0, 2000]), None)
    assert batch["state"].shape == (2, 20, 2, 16)
    assert context.told[-1] == (3, 3, "games")


def test_stopped_and_started_again_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    make({"out": str(tmp_path / "whole"), **ORDER}, Listener())
    with pytest.raises(StopRequested):
        make({"out": str(tmp_path / "parts"), **ORDER}, Listener(stop_at=2))
    with pytest.raises(DataError, match="is not finished"):
        Store(tmp_path / "parts")
    make({"out": str(tmp_path / "parts"), **ORDER}, Listener())
    assert content(tmp_path / "parts") == content(tmp_path / "whole")


def test_more_games_can_be_added(tmp_path: Path) -> None:
    make({"out": str(tmp_path / "more"), **ORDER, "games": 2}, Listener())
    make({"out": str(tmp_path / "more"), **ORDER}, Listener())
    make({"out": str(tmp_path / "once"), **ORDER}, Listener())
    assert content(tmp_path / "more") == content(tmp_path / "once")


def test_bad_orders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="games is 1, expected a whole number"):
        make({"out": str(tmp_path / "a"), "games": 1}, Listener())
    make({"out": str(tmp_path / "b"), **ORDER}, Listener())
    with pytest.raises(DataError, match=r"was made with minutes 0\.25, not 1"):
        make({"out": str(tmp_path / "b"), **ORDER, "minutes": 1}, Listener())
