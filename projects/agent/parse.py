"""`cockpit data parse GAMES OUT`: games of another program become features and latents. Free of torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from engines.basics.errors import DataError
from engines.basics.files import make_directory
from engines.tasks import Table, TaskContext
from engines.tasks.arguments import as_struct
from engines.tasks.folder import output_folder
from projects.agent.features import write_features
from projects.agent.latents import write_latents
from projects.agent.league import SOURCES, Game, files_of, is_game, read_game
from projects.agent.recordings import FEATURES, FILE, LATENTS
from projects.agent.rewards import rewards

NOTES = "parsed.json"
READER = 1
"""Goes up when the same file would give something else."""


class _Order(msgspec.Struct, forbid_unknown_fields=True):
    source: Path
    out: Path


def parse(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Read each game and write its features and latents.

    arguments: source (a game, or a folder of games), out (a new or empty folder). Raises `UserError` for a bad
    argument and `DataError` for a bad game.
    """
    order = as_struct(arguments, _Order)
    games = {file.stem: file for file in files_of(order.source) if is_game(file)}
    if not games:
        raise DataError(
            f"{order.source}: holds no game, expected .npz files with one row a frame (gt, hp, gold_total, cw_x, …)."
        )
    known = {f"{FEATURES}/{name}/{FILE}" for name in games} | {f"{LATENTS}/{name}.npz" for name in games}
    rows: list[tuple[str | int | float, ...]] = []
    with output_folder(order.out, NOTES, {"made": "games", "reader": READER}, known.__contains__) as folder:
        for done, (name, path) in enumerate(games.items()):
            context.progress(done, len(games), "games")
            features, latents = order.out / FEATURES / name / FILE, order.out / LATENTS / f"{name}.npz"
            game = read_game(path)
            if not folder.has(name, *(str(file.relative_to(order.out)) for file in (features, latents))):
                make_directory(features.parent)
                make_directory(latents.parent)
                write_features(features, game.features, game.step, side=game.team)
                write_latents(latents, game.latents, game.features.number)
                folder.finish(name)
            rows.append(_row(game))
            for line in (*_shares(game), *game.notes):
                context.log(f"{name}: {line}")
        folder.complete()
    context.progress(len(games), len(games), "games")
    columns = ("game", "frames", "deaths", "gold events", *SOURCES)
    note = "Shares of the frames, by where their movement is from."
    context.report({"games": Table(columns, tuple(rows), note)})


def _shares(game: Game) -> list[str]:
    said = ", ".join(f"{name} {100 * share:.1f} %" for name, share in game.sources.items())
    return [f"{len(game.features.number):,} frames; movement from {said}"]


def _row(game: Game) -> tuple[str | int | float, ...]:
    gained = rewards(game.features)
    deaths, events = int(gained.death.sum()), int(gained.event.sum())
    shares = (round(share, 3) for share in game.sources.values())
    return (game.features.name, len(game.features.number), deaths, events - deaths, *shares)
