"""From stored rows to `Frames`: scales, ids and what flies about near each fighter (DOMAIN 4.2, 4.10)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from projects.melee.frames import INTS, SCALE, STATE, VOCABULARY, Frames
from projects.melee.layout import BUTTONS, FLOATS, MOST_ITEMS, STICK_STEPS, STICKS, TRIGGER_STEPS

Rows = NDArray[Any]
NEAR = 0.05
"""What a distance to an item is multiplied by, as a position."""
MOST_STATE = 12
NEEDED = (*FLOATS, "jumps", "l_cancel", "hurtbox", "ground", "airborne", "last_attack", "stocks", "combo")
"""Fields that a model reads and that an old replay may lack."""


def encode(rows: Rows, stages: NDArray[np.int64], items: Rows, projectiles: int) -> Frames:
    """The frames `rows: (batch, time)` of `FRAME` as a model sees them.

    stages: (batch,) internal ids. items: (batch, time, 15) of `ITEM`, the first `rows["items"]` of which are there.
    projectiles: how many of them, the nearest first, each fighter sees.
    """
    players = rows["players"]
    near, kinds = _near(players, rows["items"], items, projectiles)
    return Frames(
        _state(players), _control(players), _ints(players),
        torch.from_numpy(np.broadcast_to(stages[:, None], rows.shape).copy()), near, kinds,
    )  # fmt: skip


def _state(players: Rows) -> Tensor:
    """(batch, time, 2, 16) float32, scaled."""
    state = np.empty((*players.shape, len(STATE)), np.float32)
    columns = {
        **{name: players[name] for name in (*FLOATS, "stocks", "combo")},
        "facing": players["right"], "invulnerable": players["hurtbox"] != 0, "on_ground": players["airborne"] == 0,
    }  # fmt: skip
    for place, name in enumerate(STATE):
        state[..., place] = columns[name]
    state *= np.array(SCALE, np.float32)
    return torch.from_numpy(state)


def _control(players: Rows) -> Tensor:
    """(batch, time, 2, 13) from 0 to 1: a stick at rest is .5."""
    control = np.empty((*players.shape, 5 + len(BUTTONS)), np.float32)
    for place, name in enumerate(STICKS):
        control[..., place] = players[name] / np.float32(2 * STICK_STEPS) + np.float32(0.5)
    control[..., 4] = players["shoulder"] / np.float32(TRIGGER_STEPS)
    for place, bit in enumerate(BUTTONS.values(), start=5):
        control[..., place] = (players["buttons"] & bit) != 0
    return torch.from_numpy(control)


def _ints(players: Rows) -> Tensor:
    """(batch, time, 2, 7) int64, each below its vocabulary: ids never seen take the last place."""
    ints = np.empty((*players.shape, len(INTS)), np.int64)
    for place, name in enumerate(INTS):
        ints[..., place] = ground(players) if name == "ground" else players[name]
    most = np.array([VOCABULARY[name] - 1 for name in INTS])
    return torch.from_numpy(np.minimum(ints, most))


def ground(players: Rows) -> NDArray[np.int64]:
    """What a fighter stands on: 0 in the air, else the ground's id + 1."""
    stood: NDArray[np.int64] = np.where(players["airborne"] != 0, 0, players["ground"].astype(np.int64) + 1)
    return stood


def _near(players: Rows, counts: Rows, items: Rows, projectiles: int) -> tuple[Tensor, Tensor]:
    """Of the nearest items dx, dy and whether there is one, then their share of 15; and their types and states."""
    shape = players.shape  # (batch, time, 2)
    floats, ints = width(projectiles)
    near, kinds = np.zeros((*shape, floats), np.float32), np.zeros((*shape, ints), np.int64)
    some = np.nonzero(counts)  # few frames have any
    if projectiles and len(some[0]):
        near[some], kinds[some] = _nearest(players[some], counts[some], items[some], projectiles)
    return torch.from_numpy(near), torch.from_numpy(kinds)


def _nearest(players: Rows, counts: Rows, items: Rows, projectiles: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The same of frames with items: players (frames, 2), items (frames, 15)."""
    there = np.arange(MOST_ITEMS) < counts[:, None]
    away_x = items["x"][:, None] - players["x"][..., None]  # (frames, 2, 15)
    away_y = items["y"][:, None] - players["y"][..., None]
    distance = np.where(there[:, None], away_x**2 + away_y**2, np.inf)
    order = np.argsort(distance, axis=-1, kind="stable")[..., :projectiles]
    is_there = np.isfinite(np.take_along_axis(distance, order, -1))

    def chosen(values: NDArray[Any]) -> NDArray[Any]:
        wide = np.broadcast_to(values, distance.shape)
        return np.where(is_there, np.take_along_axis(wide, order, -1), 0)

    floats = np.stack([chosen(away_x) * NEAR, chosen(away_y) * NEAR, is_there], axis=-1)
    active = np.broadcast_to(counts[:, None, None] / MOST_ITEMS, (*players.shape, 1))
    types = chosen(np.minimum(items["type"], 255)[:, None])
    states = chosen(np.minimum(items["state"], MOST_STATE)[:, None])
    return (
        np.concatenate([floats.reshape(*players.shape, -1), active], axis=-1),
        np.concatenate([types, states], axis=-1),
    )


def width(projectiles: int) -> tuple[int, int]:
    """How many floats and ints `Frames.items` and `Frames.kinds` have for a fighter."""
    return (3 * projectiles + 1, 2 * projectiles) if projectiles else (0, 0)
