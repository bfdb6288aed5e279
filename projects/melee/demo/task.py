"""`cockpit data make melee OUT`: a store of demo games, each in a shard of its own, whole or absent.

Interrupted work is resumed where it stopped. More games can be added later: each depends on seed and number alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from engines.tasks.folder import output_folder
from projects.melee.demo.match import play
from projects.melee.sources import NOTES
from projects.melee.store import FORMAT, ShardWriter, is_ours, shard_files

_GENERATOR = 1
"""Goes up when the same seed would give other games, so that old and new ones are never mixed."""
FRAMES_A_MINUTE = 3600


class _Order(msgspec.Struct):
    out: Path
    games: Annotated[int, Meta(ge=2, le=99_999, description="one to learn from and one to judge by")] = 12
    minutes: Annotated[float, Meta(ge=0.1, le=8)] = 2.0
    seed: Annotated[int, Meta(ge=0)] = 0


def make(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Play the games that are not there yet.

    arguments: out (folder), games (12), minutes (2) at most of each, seed (0). Raises `UserError` for a bad argument
    and `DataError` for a folder that holds anything else, or that cannot be written.
    """
    order = as_struct(arguments, _Order)
    frames = round(order.minutes * FRAMES_A_MINUTE)
    settings = {
        "made": "demo games", "format": FORMAT, "generator": _GENERATOR, "minutes": order.minutes, "seed": order.seed,
    }  # fmt: skip
    with output_folder(order.out, NOTES, settings, is_ours) as folder:
        for number in range(order.games):
            context.progress(number, order.games, "games")
            shard = f"{number:05d}"
            if not folder.has(shard, *shard_files(number)):
                game, name = play(order.seed, number, frames), f"demo_{number:03d}"
                writer = ShardWriter()
                writer.add(name, name, game)
                writer.write(order.out, shard)
                folder.finish(shard)
                context.log(f"{name}: {len(game.frames):,} frames")
        folder.complete()
    context.progress(order.games, order.games, "games")
