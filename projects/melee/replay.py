"""Reads a Slippi replay (.slp) with peppi: two fighters, each frame as it really happened. Free of torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import peppi_py
from numpy.typing import NDArray

from engines.basics.errors import DataError
from projects.melee.game import Game, NotTaken, blank, refuse_short, sound, with_items
from projects.melee.layout import EXTERNAL_STAGES, FIRST_FRAME, OTHER_STAGE, STICK_STEPS, TRIGGER_STEPS

Rollback = Literal["last", "first"]
Array = NDArray[Any]


def read_replay(path: Path, rollback: Rollback = "last", least_frames: int = 1800) -> Game:
    """The game in a replay. Of a frame that the net code played again, the last copy, or the first, is kept.

    All copies are read and chosen from here: peppi's own choice halves its speed. Raises `NotTaken` for a game of other
    than two people or too short, `DataError` or OSError for a damaged one; peppi may panic, with a BaseException.
    """
    with _silent():
        replay = peppi_py.read_slippi(str(path))
    players = replay.start.players
    if len(players) != 2:
        raise NotTaken("players", f"{len(players)} players, expected 2")
    if any(player.type.name != "HUMAN" for player in players):
        raise NotTaken("computer", "a computer plays")
    game = game_of(replay, rollback)
    refuse_short(len(game.frames), least_frames)
    return game


@contextmanager
def _silent() -> Iterator[None]:
    """Without what this process writes to its standard error meanwhile: a panic prints there, and is raised besides."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def game_of(replay: Any, rollback: Rollback = "last") -> Game:
    """The game in what peppi read, whoever plays. Raises `DataError` where it has no frames of two fighters."""
    frames, players = replay.frames, replay.start.players
    if frames is None or len(frames.ports) != 2:
        raise DataError("it has no frames of two fighters.")
    kept = _copies(_array(frames.id), rollback)
    rows = blank(len(kept))
    missing: dict[str, None] = {}
    for place, port in enumerate(frames.ports):
        _fill(rows["players"][:, place], port.leader.pre, port.leader.post, kept, missing)
    items = _items(rows, frames.items, kept, [player.port.value for player in players], missing)
    external = int(replay.start.stage)
    version = ".".join(map(str, replay.start.slippi.version))
    return Game(rows, items, EXTERNAL_STAGES.get(external, OTHER_STAGE), external, tuple(missing), version)


def _copies(numbers: Array, rollback: Rollback) -> Array:
    """Rows of one copy of each frame, in the order of the frames: (n,). Raises `DataError` where a frame is missing."""
    if len(numbers) and np.all(np.diff(numbers) == 1):
        kept = np.arange(len(numbers))
    elif rollback == "first":
        kept = np.unique(numbers, return_index=True)[1]
    else:
        kept = len(numbers) - 1 - np.unique(numbers[::-1], return_index=True)[1]
    distinct = numbers[kept]
    if not len(kept) or distinct[0] != FIRST_FRAME or np.any(np.diff(distinct) != 1):
        raise DataError("frames are missing in its middle or at its beginning.")
    return kept


def _fill(fighter: Array, pre: Any, post: Any, kept: Array, missing: dict[str, None]) -> None:
    """One fighter's columns; names of those that are not there are added to `missing`."""
    speeds = post.velocities
    columns: dict[str, tuple[Any, Callable[[Array], Array]]] = {
        "percent": (post.percent, _same), "x": (post.position.x, _same), "y": (post.position.y, _same),
        "shield": (post.shield, _same), "state_age": (post.state_age, _same), "hitlag": (post.hitlag, _same),
        "speed_air_x": (speeds and speeds.self_x_air, _same), "speed_y": (speeds and speeds.self_y, _same),
        "speed_ground_x": (speeds and speeds.self_x_ground, _same),
        "speed_attack_x": (speeds and speeds.knockback_x, _same),
        "speed_attack_y": (speeds and speeds.knockback_y, _same),
        "action": (post.state, _same), "ground": (post.ground, _same), "buttons": (pre.buttons, _low_bits),
        "main_x": (pre.joystick.x, _stick), "main_y": (pre.joystick.y, _stick), "c_x": (pre.cstick.x, _stick),
        "c_y": (pre.cstick.y, _stick), "shoulder": (pre.triggers, _trigger),
        "jumps": (post.jumps, _same), "character": (post.character, _same), "l_cancel": (post.l_cancel, _same),
        "hurtbox": (post.hurtbox_state, _same), "last_attack": (post.last_attack_landed, _same),
        "stocks": (post.stocks, _same), "combo": (post.combo_count, _same), "airborne": (post.airborne, _same),
        "right": (post.direction, _positive),
    }  # fmt: skip
    for name, (column, change) in columns.items():
        if column is None:
            missing[name] = None
        else:
            fighter[name] = change(_array(column)[kept])


def _array(column: Any) -> Array:
    """A column of peppi's as numbers; a hole in it, of a fighter that is gone, is 0. Raises `DataError`."""
    filled = column.fill_null(0) if column.null_count else column
    return sound(filled.to_numpy(zero_copy_only=False))


def _same(values: Array) -> Array:
    return values


def _low_bits(buttons: Array) -> Array:
    """The digital buttons; higher bits say where the sticks are."""
    low: Array = buttons & 0xFFFF
    return low


def _stick(values: Array) -> Array:
    steps: Array = np.rint(values.clip(-1, 1) * STICK_STEPS)
    return steps


def _trigger(values: Array) -> Array:
    steps: Array = np.rint(values.clip(0, 1) * TRIGGER_STEPS)
    return steps


def _positive(values: Array) -> Array:
    positive: Array = values > 0
    return positive


def _items(rows: Array, items: Any, kept: Array, ports: list[int], missing: dict[str, None]) -> Array:
    """What flies about, of the frames that are kept; since version 3.0, owners since 3.6."""
    if items is None:
        missing["items"] = None
        return with_items(rows, np.zeros(len(rows), np.int64), {})
    offsets = np.asarray(items.type.offsets)
    counts = np.diff(offsets)[kept].astype(np.int64)
    places = np.repeat(offsets[:-1][kept] - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    columns = {
        "type": _array(items.type.values)[places], "state": _array(items.state.values)[places],
        "x": _array(items.position.x.values)[places], "y": _array(items.position.y.values)[places],
    }  # fmt: skip
    owner = np.full(len(places), -1, np.int8)
    if items.owner is None:
        missing["owner"] = None
    else:
        said = _array(items.owner.values)[places]
        for place, port in enumerate(ports):
            owner[said == port] = place
    return with_items(rows, counts, {**columns, "owner": owner})
