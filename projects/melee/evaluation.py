"""One evaluation: fixed windows one step ahead, then rollouts from fixed starts beside the baselines."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engines.training.project import Batch, Context, Evaluation, Loss, Piece, Result, Source
from projects.melee.breakdown import ActionBreakdown, count_actions
from projects.melee.forcing import pass_losses
from projects.melee.frames import ACTION, BINARY, CONTINUOUS, PERCENT, VELOCITY, Frames, stack, units
from projects.melee.losses import Objective
from projects.melee.rollout import constant_velocity, persistence, roll_steps
from projects.melee.rules import advance
from projects.melee.scores import HORIZONS, MODEL, STILL, TRUTH, VELOCITY_LINE, Scores
from projects.melee.world import WorldModel

SCORED = 20
"""Horizon of the score: constant velocity's position error over the model's."""
FIRST_START = 150
"""Row of a game before which no rollout starts: players stand and wait."""


class Chosen:
    """Some fixed samples of a source, evenly spread over all of them."""

    def __init__(self, source: Source, count: int) -> None:
        self._source = source
        self._indices = torch.from_numpy(np.unique(np.linspace(0, len(source) - 1, count).round().astype(np.int64)))

    def __len__(self) -> int:
        return len(self._indices)

    def batch(self, indices: Tensor, rng: np.random.Generator | None, ctx: Context | None = None) -> Batch:
        return self._source.batch(self._indices[indices], rng, ctx)


def fixed_starts(
    lengths: NDArray[np.int64], count: int, horizon: int, seed: int, past: int = 0
) -> tuple[NDArray[np.int64], ...]:
    """`count` starts in each game: which game each is in, and its row there, both (games · count,).

    A game too short for any gives none. What a game gets depends on its own length alone. past: frames that each
    start needs up to itself.
    """
    games, rows = [], []
    earliest = max(FIRST_START, past - 1)
    for game, length in enumerate(lengths.tolist()):
        possible = length - horizon - earliest
        if possible > 0:
            games.append(np.full(count, game))
            rows.append(earliest + np.random.default_rng(seed).integers(0, possible, count))
    nothing = np.zeros(0, np.int64)
    return np.concatenate([nothing, *games]), np.concatenate([nothing, *rows])


def rollout_pieces(
    model: WorldModel, games: Frames, past: int, scores: Scores, seed: int | None = None
) -> Generator[int]:
    """Add rollouts of the model, both baselines and the truth to `scores`, yielding after each frame of the model.

    games: (batch, past + horizon) true frames; the newest of the past is the start. seed: of drawn hits.
    """
    before, truth = games.at(slice(None, past)), games.at(slice(past, None))
    start, horizon = before.at(-1), games.frames - past
    rolled = []
    for frame in roll_steps(model, before, truth.control, seed):
        rolled.append(frame)
        yield len(rolled)
    scores.add(MODEL, start, stack(rolled), truth)
    scores.add(VELOCITY_LINE, start, constant_velocity(start, horizon), truth)
    scores.add(STILL, start, persistence(start, horizon), truth)
    scores.add(TRUTH, start, truth, truth)


def rollout_values(scores: Scores) -> tuple[dict[str, float | None], float | None]:
    """Position, action and percent of the model at each horizon, by the names of the table's columns; and the score."""
    values: dict[str, float | None] = {}
    for horizon in scores.horizons:
        values[f"position_{horizon}"] = scores.position(MODEL, horizon)
        for what in ("percent", "action", "change"):
            values[f"{what}_{horizon}"] = scores.at(MODEL, what, horizon)
    ours, theirs = scores.position(MODEL, SCORED), scores.position(VELOCITY_LINE, SCORED)
    return values, theirs / ours if ours and theirs is not None else None


@dataclass
class MeleeEvaluation(Evaluation):
    """Fixed windows and fixed starts, however many games there are.

    objective: how predictions are judged. starts: (starts, past + horizon) true frames; past: frames before a rollout.
    """

    objective: Objective
    starts: Frames
    past: int
    _scores: Scores = field(default_factory=lambda: Scores(HORIZONS))
    kept: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    """Counts of actions and one-step sums of each batch."""

    def add(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        assert isinstance(model, WorldModel)
        sequence = Frames(**batch)
        said = model(sequence.at(slice(None, -1)), sequence.control[:, 1:])
        seen = sequence.at(slice(model.skipped, None))
        last, target = seen.at(slice(None, -1)), seen.at(slice(1, None))
        frame = advance(last, said, target.control, model.first_age)
        begins = target.ints[..., ACTION] != last.ints[..., ACTION]
        counted = count_actions(frame.ints[..., ACTION], target.ints[..., ACTION], begins)
        self.kept.append((counted, _one_step(frame, target)))
        losses = pass_losses(self.objective, said, last, seen)
        return {name: loss for name, loss in losses.items() if name in ctx.heads}

    def after(self, model: nn.Module, ctx: Context) -> Generator[Piece]:
        assert isinstance(model, WorldModel)
        horizon = self.starts.frames - self.past
        for done in rollout_pieces(model, self.starts, self.past, self._scores):
            yield done, horizon, "frames rolled out"

    def result(self) -> Result:
        counted, one_step = zip(*self.kept, strict=True)
        actions = ActionBreakdown(reduce(torch.add, counted))
        frames, *sums = reduce(torch.add, one_step).tolist()
        names = ("position_mae", "velocity_mae", "percent_mae", "binary_accuracy")
        accuracy, change = actions.accuracy()
        values, score = rollout_values(self._scores)
        values |= {name: total / frames for name, total in zip(names, sums, strict=True)}
        values |= {"action_accuracy": accuracy, "change_accuracy": change}
        return Result(values=values, score=score, tables={**self._scores.tables(), **actions.tables()})


def _one_step(frame: Frames, target: Frames) -> Tensor:
    """Fighters counted, then sums over them: position, velocity and percent errors in game units, right bits: (5,)."""
    error = (frame.state - target.state).abs() / units(frame.state.device)
    right = 1 - (frame.state - target.state)[..., BINARY].abs()
    each = [
        torch.ones_like(error[..., 0]), error[..., CONTINUOUS][..., 1:3].mean(-1), error[..., VELOCITY].mean(-1),
        error[..., PERCENT], right.mean(-1),
    ]  # fmt: skip
    return torch.stack([part.double().sum() for part in each])
