"""Games in slippi-ai's form, made up: any numbers, with every field of such a table, speeds or not."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from projects.melee.layout import BUTTONS, MOST_ITEMS
from projects.melee.table import LATER

WHOLE = {"stocks": 5, "l_cancel": 3, "hurtbox_state": 3, "ground": 40, "last_attack_landed": 63, "combo_count": 9}


def columns(frames: int, seed: int, *, speeds: bool = True) -> dict[str, Any]:
    """The columns of a game, by the names that such a table has."""
    random = np.random.default_rng(seed)
    return {
        **{f"p{place}": _player(random, frames, speeds) for place in range(2)},
        "stage": np.full(frames, 24, np.uint8),
        "items": {
            f"item_{place}": {
                "exists": random.random(frames) < 0.5 / (place + 1),
                "type": random.integers(30, 200, frames).astype(np.uint16),
                "state": random.integers(0, 14, frames).astype(np.uint8),
                "x": random.normal(0, 40, frames).astype(np.float32),
                "y": random.normal(0, 20, frames).astype(np.float32),
            }
            for place in range(MOST_ITEMS)
        },
    }


def _player(random: np.random.Generator, frames: int, speeds: bool) -> dict[str, Any]:
    stick = {axis: (random.integers(-80, 81, frames) / 160 + 0.5).astype(np.float32) for axis in "xy"}
    player = {
        "percent": random.integers(0, 150, frames).astype(np.uint16),
        "facing": random.random(frames) < 0.5,
        "x": random.normal(0, 40, frames).astype(np.float32),
        "y": random.normal(0, 20, frames).astype(np.float32),
        "action": random.integers(0, 400, frames).astype(np.uint16),
        "invulnerable": random.random(frames) < 0.1,
        "character": np.full(frames, 7 + 15 * int(random.random() < 0.5), np.uint8),
        "jumps_left": random.integers(0, 3, frames).astype(np.uint8),
        "shield_strength": random.uniform(0, 60, frames).astype(np.float32),
        "on_ground": random.random(frames) < 0.6,
        "controller": {
            "main_stick": stick,
            "c_stick": {axis: np.full(frames, 0.5, np.float32) for axis in "xy"},
            "shoulder": (random.integers(0, 141, frames) / 140).astype(np.float32),
            "buttons": {name: random.random(frames) < 0.2 for name in BUTTONS},
        },
    }
    if speeds:
        for name in LATER.values():
            whole = name in WHOLE
            values = random.integers(0, WHOLE[name], frames) if whole else random.normal(0, 2, frames)
            player[name] = values.astype(np.uint16 if whole else np.float32)
    return player


def write_table(path: Path, content: dict[str, Any], *, packed: bool = True) -> None:
    """The columns as a table with the one column root, packed by zlib or not."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"root": _struct(content)}), sink)
    data = sink.getvalue().to_pybytes()
    path.write_bytes(zlib.compress(data) if packed else data)


def _struct(content: dict[str, Any]) -> pa.StructArray:
    arrays = [_struct(value) if isinstance(value, dict) else pa.array(value) for value in content.values()]
    return pa.StructArray.from_arrays(arrays, names=list(content))
