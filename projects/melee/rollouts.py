"""`cockpit rollout RUN`: a trained model rolled out from fixed starts, beside constant velocity and persistence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import torch
from msgspec import Meta

from engines.basics.errors import DataError, UserError, nearest
from engines.contract.rundir import RunDirectory
from engines.runs.saved import read_saved
from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from engines.training.project import Table
from engines.training.trained import open_run
from projects.melee.config import MeleeConfig
from projects.melee.evaluation import SCORED, fixed_starts, rollout_pieces, rollout_values
from projects.melee.games import GameWindows, complete_games
from projects.melee.project import Melee, past_frames, true_games
from projects.melee.scores import BASELINES, HORIZONS, Scores
from projects.melee.store import Store
from projects.melee.world import WorldModel

BATCH = 300
"""Rollouts that are stepped together."""


class Order(msgspec.Struct):
    """What is asked for. games: names; those that validate where empty, `test` for those held out."""

    run: Path
    starts: Annotated[int, Meta(ge=1, le=100_000)] = 300
    """In each game."""
    horizons: tuple[Annotated[int, Meta(ge=1, le=3600)], ...] = HORIZONS
    games: list[str] = []
    data: Path | None = None
    """Another store than the run's."""
    seed: Annotated[int, Meta(ge=0)] = 0
    draw: bool = False
    """Draw hits as often as they are likely, as in play; else only sure hits are hits."""

    def __post_init__(self) -> None:
        if not self.horizons:
            raise ValueError("horizons is empty, expected numbers of frames such as 1,5,10,20,60.")


def rollout(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Roll out and report: position, percent, action, changes, survival, broken rules, each by horizon.

    arguments: of `Order`. Raises `UserError` for bad arguments and `DataError` for what cannot be read.
    """
    order = as_struct(arguments, Order)
    trained = open_run(RunDirectory(order.run))
    cfg: MeleeConfig = trained.settings
    model = trained.load_into(Melee().build(cfg))
    assert isinstance(model, WorldModel)
    games = chosen_games(cfg, order)
    horizons = sorted(set(order.horizons))
    scores = Scores(horizons)
    lengths = np.array([placed.game.frames for placed in games.games])
    which, rows = fixed_starts(lengths, order.starts, horizons[-1], order.seed, past_frames(cfg))
    if not len(which):
        raise DataError(f"{games.store.path}: no game is long enough for {horizons[-1]} frames; use shorter horizons.")
    context.log(f"{len(which):,} starts in {len(set(which.tolist()))} games, epoch {trained.state.epoch}")
    past, done = past_frames(cfg), 0
    with torch.inference_mode():
        for first in range(0, len(which), BATCH):
            some = slice(first, first + BATCH)
            true = true_games(games, which[some], rows[some], past, horizons[-1])
            for frame in rollout_pieces(model, true, past, scores, order.seed + first if order.draw else None):
                context.progress(done + frame * len(true), len(which) * horizons[-1], "frames")
            done += len(true) * horizons[-1]
    tables = scores.tables()
    context.report(tables)
    position = tables["Position"]
    lines = position.rows[: 1 + len(BASELINES)]  # without the skills, which the other table has
    _log(context, "Position", Table(position.columns[:-1], tuple(row[:-1] for row in lines)))
    _log(context, "Against the baselines", tables["Against the baselines"])
    score = rollout_values(scores)[1]
    if score is not None:
        context.log(f"score: constant velocity's position error at {SCORED} is {score:.3f} of the model's")


def chosen_games(cfg: MeleeConfig, order: Order) -> GameWindows:
    """The games to start in. Raises `DataError` for a name that the store has not."""
    store = Store(order.data or Path(cfg.data.path))
    games, _ = complete_games(store)
    names = {placed.game.name: placed for placed in games}
    wanted = cfg.data.test if order.games == ["test"] else order.games
    if order.games == ["test"] and not wanted:
        raise UserError("games is test, but data.test of the run names no game that was held out.")
    for name in wanted:
        if name not in names:
            raise DataError(f"{store.path}: holds no whole game {name!r}{nearest(name, names)}.")
    if not wanted and order.data is None:
        wanted = validated(RunDirectory(order.run))
        if gone := [name for name in wanted if name not in names]:
            raise DataError(f"{store.path}: {gone[0]!r}, which validated the run, is gone; name other games.")
    shown = [names[name] for name in wanted] if wanted else games
    return GameWindows(store, shown, past_frames(cfg) + max(order.horizons), cfg.data.projectiles, torch.device("cpu"))


def validated(run: RunDirectory) -> list[str]:
    """The games that validated the run, which it was not trained on, as its best checkpoint names them."""
    return list(read_saved(run.best).metadata["validation_games"])


def _log(context: TaskContext, name: str, table: Table) -> None:
    for row in ((name, *table.columns[1:]), *table.rows):
        cells = (f"{'' if cell is None else cell!s:>9}" for cell in row[1:])
        context.log(f"{row[0]!s:<22}{''.join(cells)}")
