"""Encoded frames equal a slow reading, field by field, of the stored rows; windows are those of their games."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engines.basics.errors import DataError
from engines.training.samples import Ranges
from projects.melee import store as stores
from projects.melee.encoding import NEEDED
from projects.melee.frames import CONTROL, INTS, SCALE, STATE, VOCABULARY
from projects.melee.games import GameWindows, complete_games
from projects.melee.layout import BUTTONS, FRAME, ITEM
from projects.melee.store import Store
from tests.projects.melee.tables import columns, write_table
from tests.projects.melee.test_parse import parsed

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Five games of other lengths in several shards, one of them without speeds."""
    folder, out = tmp_path_factory.mktemp("tables"), tmp_path_factory.mktemp("store") / "out"
    for k, frames in enumerate((130, 210, 150, 180, 160)):
        write_table(folder / f"game_{k}.parquet", columns(frames, k, speeds=k != 2))
    for k in range(5):
        parsed(folder / f"game_{k}.parquet", out)  # each into a shard of its own
    return Store(out)


def slow_state(player: Any) -> list[float]:
    """Of one fighter in one row, as DOMAIN 4.2 lists it."""
    values = {name: float(player[name]) for name in (*STATE[:13],) if name in player.dtype.names}
    values |= {
        "facing": float(player["right"] == 1),
        "invulnerable": float(player["hurtbox"] > 0),
        "on_ground": float(player["airborne"] == 0),
    }
    return [values[name] * scale for name, scale in zip(STATE, SCALE, strict=True)]


def slow_control(player: Any) -> list[float]:
    sticks = [int(player[name]) / 80 / 2 + 0.5 for name in ("main_x", "main_y", "c_x", "c_y")]
    pressed = [float(bool(player["buttons"] & BUTTONS[name])) for name in CONTROL[5:]]
    return [*sticks, int(player["shoulder"]) / 140, *pressed]


def slow_near(rows: Any, place: int, table: Any) -> tuple[list[float], list[int]]:
    """The two nearest items of a fighter: dx, dy, 1 each, then the number of items; types and states."""
    first, count = int(rows["first_item"]), int(rows["items"])
    player, items = rows["players"][place], table[first : first + count]
    away = [(item["x"] - player["x"], item["y"] - player["y"], item) for item in items]
    nearest = sorted(away, key=lambda one: float(one[0]) ** 2 + float(one[1]) ** 2)[:2]
    floats, types, states = [], [], []
    for dx, dy, item in nearest:
        floats += [float(dx) * 0.05, float(dy) * 0.05, 1.0]
        types.append(min(int(item["type"]), 255))
        states.append(min(int(item["state"]), 12))
    empty = 2 - len(nearest)
    return [*floats, *[0.0] * 3 * empty, count / 15], [*types, *[0] * empty, *states, *[0] * empty]


def test_every_number_is_that_of_a_slow_reading(store: Store) -> None:
    games, lacking = complete_games(store)
    assert len(games) == 4
    assert sum(lacking.values()) == 1
    windows = GameWindows(store, games, 5, 2, CPU)
    assert len(windows) == 126 + 206 + 176 + 156
    indices = torch.tensor([400, 0, 125, 126, len(windows) - 1, 331, 332])
    found = windows.batch(indices, None, None)
    ends = np.cumsum([126, 206, 176, 156])
    for row, index in enumerate(indices.tolist()):
        game = int(np.searchsorted(ends, index, side="right"))
        rows, table = store.game(store.games.index(games[game]))
        begins = index - int(ends[game] - [126, 206, 176, 156][game])
        for step in range(5):
            frame = rows[begins + step]
            for place in range(2):
                player = frame["players"][place]
                assert found["state"][row, step, place].tolist() == pytest.approx(slow_state(player), rel=1e-6)
                assert found["control"][row, step, place].tolist() == pytest.approx(slow_control(player), abs=1e-7)
                floats, kinds = slow_near(frame, place, table)
                assert found["items"][row, step, place].tolist() == pytest.approx(floats, rel=1e-4, abs=1e-6)
                assert found["kinds"][row, step, place].tolist() == kinds
                ints = dict(zip(INTS, found["ints"][row, step, place].tolist(), strict=True))
                stands = min(int(player["ground"]) + 1, VOCABULARY["ground"] - 1)
                assert ints["ground"] == (0 if player["airborne"] else stands)
                assert ints["action"] == player["action"]
                assert ints["last_attack"] == min(int(player["last_attack"]), 63)
            assert found["stage"][row, step] == 24


def test_what_will_be_read_is_asked_for_and_no_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of windows 100 to 139 (of two games, which are in shards of their own) and 400 to 402."""
    asked: dict[str, set[int]] = {}

    def advice(file: int, first: int, size: int, how: int) -> None:
        assert how == os.POSIX_FADV_WILLNEED
        asked.setdefault(Path(os.readlink(f"/proc/self/fd/{file}")).name, set()).update(range(first, first + size))

    monkeypatch.setattr(os, "posix_fadvise", advice)
    monkeypatch.setattr(stores, "ADVICE_BYTES", 1000)
    windows = GameWindows(store, complete_games(store)[0], 5, 2, CPU)
    windows.will_read(Ranges(np.array([100, 400]), np.array([140, 403])))
    row, shards = FRAME.itemsize, {path.name: path.stat().st_size for path in store.path.glob("*.npy")}
    header = shards["00000.frames.npy"] - 130 * row
    games = {"00000": (100, 130), "00001": (0, 18), "00003": (400 - 126 - 206, 403 - 126 - 206 + 4)}
    frames = {name: bytes_ for name, bytes_ in asked.items() if name.endswith("frames.npy")}
    assert frames == {
        f"{name}.frames.npy": set(range(header + first * row, header + stop * row))
        for name, (first, stop) in games.items()
    }  # fmt: skip
    for name in games:
        items = len(store.items(int(name))) * ITEM.itemsize
        size = shards[f"{name}.items.npy"]
        assert asked[f"{name}.items.npy"] == set(range(size - items, size))


def test_without_projectiles_there_are_no_items(store: Store) -> None:
    games, _ = complete_games(store)
    found = GameWindows(store, games, 7, 0, CPU).batch(torch.tensor([3]), None, None)
    assert (found["items"].shape, found["kinds"].shape) == ((1, 7, 2, 0), (1, 7, 2, 0))
    assert 2 * (found["state"].shape[-1] + found["control"].shape[-1]) == 58  # DOMAIN 4.2
    assert 2 * found["ints"].shape[-1] + 1 == 15


def test_a_window_longer_than_every_game_is_refused(store: Store) -> None:
    with pytest.raises(DataError, match="no game is as long as a window of 500 frames"):
        GameWindows(store, complete_games(store)[0], 500, 0, CPU)


def test_games_without_speeds_are_not_learned_from(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", columns(150, 1, speeds=False))
    parsed(tmp_path / "a.parquet", tmp_path / "out")
    with pytest.raises(DataError, match="no game has every field"):
        complete_games(Store(tmp_path / "out"))
    assert set(NEEDED) >= {"speed_y", "hitlag", "ground"}


def test_a_stage_and_characters_never_seen_have_places_of_their_own(tmp_path: Path) -> None:
    made = columns(150, 1)
    made["stage"][:] = 15
    made["p0"]["character"][:] = 200
    made["p1"]["character"][:] = 26
    made["p0"]["action"][:] = 6000
    write_table(tmp_path / "a.parquet", made)
    parsed(tmp_path / "a.parquet", tmp_path / "out")
    store = Store(tmp_path / "out")
    assert (store.games[0].game.stage, store.games[0].game.characters) == (0, (200, 26))
    found = GameWindows(store, complete_games(store)[0], 9, 2, CPU).batch(torch.tensor([5]), None, None)
    ints = found["ints"][0]
    assert set(ints[:, 0, INTS.index("character")].tolist()) == {VOCABULARY["character"] - 1}
    assert set(ints[:, 1, INTS.index("character")].tolist()) == {26}
    assert set(ints[:, 0, INTS.index("action")].tolist()) == {VOCABULARY["action"] - 1}
    assert set(found["stage"].flatten().tolist()) == {0}
