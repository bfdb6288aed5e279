"""`cockpit data make agent OUT`: a folder of games of the arena. Interrupted, it is taken up where it stopped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from engines.basics.files import make_directory
from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from engines.tasks.folder import output_folder
from projects.agent.demo.odds import FOLDER, write_odds
from projects.agent.demo.record import record
from projects.agent.features import write_features
from projects.agent.latents import write_latents
from projects.agent.recordings import FEATURES, FILE, LATENTS

NOTES = "demo.json"
GENERATOR = 2
"""Goes up when the same seed would give other games, so that old and new ones are never mixed."""
_NAME = re.compile(rf"{FEATURES}/demo_\d{{3,4}}/{re.escape(FILE)}|({LATENTS}|{FOLDER})/demo_\d{{3,4}}\.npz")


class _Order(msgspec.Struct, forbid_unknown_fields=True):
    out: Path
    games: Annotated[int, Meta(ge=2, le=9999, description="some train and some validate")] = 160
    frames: Annotated[int, Meta(ge=32, le=100_000)] = 300
    seed: Annotated[int, Meta(ge=0)] = 0


def make(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Record the games that are not there yet.

    arguments: out (folder), games (160), frames (300) of each, 20 a second, seed (0). Raises `UserError` for a bad
    argument and `DataError` for a folder that holds anything else, or that cannot be written.
    """
    order = as_struct(arguments, _Order)
    settings = {"made": "games of the arena", "generator": GENERATOR, "frames": order.frames, "seed": order.seed}
    with output_folder(order.out, NOTES, settings, lambda name: _NAME.fullmatch(name) is not None) as folder:
        for number in range(order.games):
            context.progress(number, order.games, "games")
            name = f"demo_{number:03d}"
            files = f"{FEATURES}/{name}/{FILE}", f"{LATENTS}/{name}.npz", f"{FOLDER}/{name}.npz"
            if not folder.has(name, *files):
                game = record(order.seed, number, order.frames)
                features, latents, odds = (order.out / file for file in files)
                for path in (features, latents, odds):
                    make_directory(path.parent)
                write_features(features, game.features, game.step, side="blue")
                write_latents(latents, game.latents, game.features.number)
                write_odds(odds, game.odds)
                folder.finish(name)
        folder.complete()
    context.progress(order.games, order.games, "games")
