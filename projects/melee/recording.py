"""Games that were played in a model's world, written as a store: read again like real ones, without items."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.tasks.folder import output_folder
from projects.melee.frames import CONTROL, GROUND, HURTBOX, INTS, ON_GROUND, STATE, STICKS, Frames, stack
from projects.melee.game import Game, blank
from projects.melee.layout import BUTTONS, FLOATS, ITEM, STICK_STEPS, TRIGGER_STEPS
from projects.melee.sources import NOTES
from projects.melee.store import FORMAT, ShardWriter, is_ours

IN_THE_AIR = 0xFFFF


def rows_of(frames: Frames) -> NDArray[Any]:
    """The frames (1, time) as stored rows (time,): what `encoding.encode` reads as the same.

    But for items, of which there are none, and `invulnerable`, which follows the hurtbox.
    """
    rows = blank(frames.frames)
    players = rows["players"]
    for name in (*FLOATS, "stocks", "combo"):
        players[name] = frames.value(STATE.index(name))[0].numpy().round(6)
    players["right"] = frames.state[0, ..., STATE.index("facing")].numpy() > 0.5
    players["airborne"] = frames.state[0, ..., ON_GROUND].numpy() < 0.5
    for name in ("action", "jumps", "character", "l_cancel", "last_attack"):
        players[name] = frames.ints[0, ..., INTS.index(name)].numpy()
    players["hurtbox"] = frames.ints[0, ..., HURTBOX].numpy()
    stood = frames.ints[0, ..., GROUND].numpy() - 1
    players["ground"] = np.where(stood < 0, IN_THE_AIR, stood)
    control = frames.control[0].numpy()
    for place, name in enumerate(CONTROL[STICKS]):
        players[name] = ((control[..., place] - 0.5) * 2 * STICK_STEPS).round()
    players["shoulder"] = (control[..., 4] * TRIGGER_STEPS).round()
    pressed = control[..., 5:] > 0.5
    players["buttons"] = (pressed * np.array(list(BUTTONS.values()))).sum(-1)
    return rows


def write_game(folder: Path, name: str, played: Sequence[Frames]) -> None:
    """A store at `folder` that holds one game, whose frames (1) are `played`. Raises `DataError` or OSError."""
    frames = stack(list(played))
    game = Game(rows_of(frames), np.zeros(0, ITEM), int(frames.stage[0, 0]), None, (), "played")
    writer = ShardWriter()
    writer.add(name, name, game)
    with output_folder(folder, NOTES, {"made": "games", "format": FORMAT}, is_ours) as out:
        writer.write(folder, "00000")
        out.finish("00000")
        out.complete()
