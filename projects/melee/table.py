"""Reads a game in slippi-ai's form: a parquet table with one struct a frame, often packed by zlib. Free of torch."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from engines.basics.errors import DataError
from projects.melee.game import Game, blank, refuse_short, sound, with_items
from projects.melee.layout import BUTTONS, MOST_ITEMS, OTHER_STAGE, STAGES, STICK_STEPS, TRIGGER_STEPS

Array = NDArray[Any]
PARQUET = b"PAR1"
SAME = {
    "percent": "percent", "x": "x", "y": "y", "shield": "shield_strength", "action": "action",
    "character": "character", "jumps": "jumps_left", "right": "facing",
}  # fmt: skip
"""Our columns by theirs, in every such table."""
LATER = {
    "speed_air_x": "speed_air_x", "speed_y": "speed_y", "speed_ground_x": "speed_ground_x",
    "speed_attack_x": "speed_attack_x", "speed_attack_y": "speed_attack_y", "state_age": "state_age",
    "hitlag": "hitlag", "stocks": "stocks", "l_cancel": "l_cancel", "hurtbox": "hurtbox_state", "ground": "ground",
    "last_attack": "last_attack_landed", "combo": "combo_count",
}  # fmt: skip
"""Columns that only some tables have."""
HALF = 0.5


def read_table(path: Path, least_frames: int = 1800) -> Game:
    """The game in a table. What it lacks is missing, above all speeds. Raises `DataError` or `NotTaken`."""
    root = _root(path)
    frames = len(root)
    refuse_short(frames, least_frames)
    rows = blank(frames)
    missing: dict[str, None] = {}
    try:
        for place in range(2):
            _fill(rows["players"][:, place], root.field(f"p{place}"), missing)
        stage = int(root.field("stage")[0].as_py())
        items = _items(rows, root.field("items"))
    except (KeyError, pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"it is no table of a game as slippi-ai writes them ({error}).") from None
    missing["owner"] = None
    return Game(rows, items, stage if stage in STAGES else OTHER_STAGE, None, tuple(missing), "slippi-ai")


def _root(path: Path) -> pa.StructArray:
    content = path.read_bytes()
    try:
        if not content.startswith(PARQUET):
            content = zlib.decompress(content)
        column = pq.read_table(pa.BufferReader(content)).column("root").combine_chunks()
    except (zlib.error, pa.ArrowException, KeyError) as error:
        raise DataError(f"it is no parquet table with a column root ({error}).") from None
    if not isinstance(column, pa.StructArray):
        raise DataError("its column root is no struct.")
    return column


def _fill(fighter: Array, player: pa.StructArray, missing: dict[str, None]) -> None:
    names = {player.type.field(place).name for place in range(player.type.num_fields)}
    for ours, theirs in SAME.items():
        fighter[ours] = _array(player.field(theirs))
    fighter["airborne"] = ~_array(player.field("on_ground")).astype(bool)
    for ours, theirs in LATER.items():
        if theirs in names:
            fighter[ours] = _array(player.field(theirs))
        else:
            missing[ours] = None
    controller = player.field("controller")
    for ours, stick, axis in (
        ("main_x", "main_stick", "x"), ("main_y", "main_stick", "y"), ("c_x", "c_stick", "x"), ("c_y", "c_stick", "y"),
    ):  # fmt: skip
        pushed = _array(controller.field(stick).field(axis)).clip(0, 1) - HALF
        fighter[ours] = np.rint(pushed * 2 * STICK_STEPS)
    fighter["shoulder"] = np.rint(_array(controller.field("shoulder")).clip(0, 1) * TRIGGER_STEPS)
    for name, bit in BUTTONS.items():
        fighter["buttons"] |= np.where(_array(controller.field("buttons").field(name)), bit, 0).astype(np.uint16)


def _items(rows: Array, items: pa.StructArray) -> Array:
    slots = [items.field(f"item_{place}") for place in range(MOST_ITEMS)]
    there = np.stack([_array(slot.field("exists")).astype(bool) for slot in slots], axis=1)
    columns = {
        name: np.stack([_array(slot.field(name)) for slot in slots], axis=1)[there]
        for name in ("x", "y", "type", "state")
    }
    owner = np.full(int(there.sum()), -1, np.int8)
    return with_items(rows, there.sum(axis=1), {**columns, "owner": owner})


def _array(column: pa.Array) -> Array:
    """A column as numbers. Raises `DataError`."""
    return sound(column.to_numpy(zero_copy_only=False))
