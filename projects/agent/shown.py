"""What play shows: a recorded game with what the model says and dreams of it, and episodes that it played."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.basics.errors import DataError
from projects.agent.config import AgentConfig
from projects.agent.dynamics import Actions
from projects.agent.imagine import continued, look_back
from projects.agent.layout import ABILITIES, MOVEMENTS
from projects.agent.net import AgentNet, dreaming
from projects.agent.playing import play
from projects.agent.predictions import event_chance
from projects.agent.recordings import Recording
from projects.agent.rewards import events
from projects.agent.scores import changes

BATCH = 32
"""Stretches that are dreamed side by side."""
SEED = 30_000
"""Of the episodes that are played to be looked at."""
Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
Tick = Callable[[int, int], None]


@dataclass(frozen=True)
class Shown:
    """A game of F frames; what is not known of a frame is NaN.

    latents, dreamed: (F, C, H, W) as recorded. age: (F,) frames since the dream began, 0 where there is none.
    error: (F,) of the dream, root mean square over cells in deviations.
    error_by_horizon, still_by_horizon: (H,) the same in mean over all dreams, and where nothing moves.
    reward, said_reward, said_event, value: (F,). movement: (F,), abilities: (F, 8), said_movement: (F, 19),
    said_abilities: (F, 8). changed, events: (F,). used: (8,) abilities used at all.
    """

    name: str
    latents: Floats
    dreamed: Floats
    age: NDArray[np.int64]
    error: Floats
    error_by_horizon: Floats
    still_by_horizon: Floats
    reward: Floats
    said_reward: Floats
    said_event: Floats
    value: Floats
    movement: NDArray[np.int64]
    abilities: Bools
    said_movement: Floats
    said_abilities: Floats
    changed: Bools
    events: Bools
    used: Bools

    def __len__(self) -> int:
        return len(self.latents)


@dataclass(frozen=True)
class Filmed:
    """A played episode of F frames: latents (F, C, H, W), reward, value, movement, events (F,), abilities (F, 8)."""

    latents: Floats
    reward: Floats
    value: Floats
    movement: NDArray[np.int64]
    abilities: Bools
    events: Bools
    gold: float
    deaths: int

    def __len__(self) -> int:
        return len(self.reward)

    @property
    def total(self) -> float:
        """The return."""
        return float(self.reward.sum())


def show(net: AgentNet, cfg: AgentConfig, game: Recording, horizon: int, tick: Tick) -> Shown:
    """The game seen frame by frame, and dreams of `horizon` frames that begin one after the other, from true frames.

    Raises `DataError` for a game that is too short for one.
    """
    context = cfg.imagination.context
    if len(game) < context + horizon:
        raise DataError(
            f"{game.name} has {len(game)} frames; a dream of {horizon} needs {context + horizon}, so set horizon lower."
        )
    z, actions, present = _whole(net, game)
    starts = np.arange(0, len(game) - context - horizon + 1, horizon)
    said = _Said.blank(len(game), net.dynamics.latent)
    errors, still = [], []
    for first in range(0, len(starts), BATCH):
        rows = torch.from_numpy(starts[first : first + BATCH, None] + np.arange(context + horizon))
        some = Actions(actions.movement[rows], actions.abilities[rows], actions.known[rows])
        agent, _ = look_back(net.dynamics, z[rows], some, present[rows], dreaming(cfg, SEED))
        dreamed, _ = continued(net.dynamics, z[rows], some, present[rows], context, dreaming(cfg, SEED))
        said.note(net, rows.numpy(), agent, context if first else 0)
        said.dream(net, rows[:, context:].numpy(), dreamed)
        truth = z[rows[:, context:]]
        errors.append((dreamed - truth).square().mean((2, 3, 4)).sqrt())
        still.append((z[rows[:, context - 1]][:, None] - truth).square().mean((2, 3, 4)).sqrt())
        said.error[rows[:, context:].numpy()] = errors[-1].numpy()
        tick(min(len(game), int(rows.max()) + 1), len(game))
    movement = game.movement.astype(np.int64)
    return Shown(
        name=game.name, latents=game.seen(0, len(game)), dreamed=said.dreamed, age=said.age, error=said.error,
        error_by_horizon=torch.cat(errors).mean(0).numpy(), still_by_horizon=torch.cat(still).mean(0).numpy(),
        reward=np.where(game.rewards.known, game.rewards.reward, np.nan).astype(np.float32),
        said_reward=said.reward, said_event=said.event, value=said.value, movement=movement, abilities=game.abilities,
        said_movement=said.movement, said_abilities=said.abilities,
        changed=changes(movement[None], game.acted[None])[0], events=game.rewards.event,
        used=np.asarray(game.abilities.any(axis=0)),
    )  # fmt: skip


@dataclass
class _Said:
    """What the model says of each frame, NaN until it is noted."""

    dreamed: Floats
    age: NDArray[np.int64]
    error: Floats
    reward: Floats
    event: Floats
    value: Floats
    movement: Floats
    abilities: Floats

    @classmethod
    def blank(cls, frames: int, latent: tuple[int, int, int]) -> _Said:
        def nothing(*shape: int) -> Floats:
            return np.full((frames, *shape), np.nan, np.float32)

        age = np.zeros(frames, np.int64)
        return cls(
            nothing(*latent), age, nothing(), nothing(), nothing(), nothing(), nothing(MOVEMENTS),
            nothing(len(ABILITIES)),
        )  # fmt: skip

    def note(self, net: AgentNet, rows: NDArray[np.int64], agent: Tensor, skipped: int) -> None:
        """Heads on agent tokens (stretches, time, width) of the frames `rows`; the first `skipped` saw too little."""
        frames = rows[:, skipped:]
        chance, reward = event_chance(net, agent)
        self.event[frames], self.reward[frames] = (part[:, skipped:, 0].numpy() for part in (chance, reward))
        self.value[frames] = net.value.twohot.mean(net.value(agent))[:, skipped:].numpy()
        ahead = rows[:, max(skipped, 1) :]  # what a frame's token says of the next action
        movement, abilities = (part[:, max(skipped, 1) - 1 : -1].numpy() for part in net.policy(agent).at(0).odds())
        self.movement[ahead], self.abilities[ahead] = movement, abilities

    def dream(self, net: AgentNet, frames: NDArray[np.int64], dreamed: Tensor) -> None:
        self.dreamed[frames] = net.restored(dreamed)
        self.age[frames] = 1 + np.arange(frames.shape[1])


def _whole(net: AgentNet, game: Recording) -> tuple[Tensor, Actions, Tensor]:
    """Latents (F, C, H, W), normalised and 0 where missing, actions and presence (F,) of a game."""
    present = torch.from_numpy(game.rows >= 0)
    z = net.normalised(game.seen(0, len(game))) * present[:, None, None, None]
    movement = torch.from_numpy(game.movement.astype(np.int64))
    abilities = torch.from_numpy(game.abilities.astype(np.float32))
    return z, Actions(movement, abilities, torch.from_numpy(game.acted)), present


def film(net: AgentNet, cfg: AgentConfig, episodes: int, frames: int, tick: Tick) -> list[Filmed]:
    """Episodes that the policy plays, drawn from it, the worst first."""
    playing = play(
        net, net.policy, greedy=False, episodes=episodes, frames=frames, seed=SEED, noise=cfg.imagination.noise,
        keep=True,
    )  # fmt: skip
    while True:
        try:
            tick(next(playing), frames)
        except StopIteration as stop:
            played = stop.value
            break
    rewards, happened = played.rewards.astype(np.float32), events(played.gold, played.death)
    order = np.argsort(played.returns, kind="stable")
    return [
        Filmed(
            played.latents[k, 1:], rewards[k], played.value[k], played.movement[k], played.abilities[k],
            happened[k], float(played.gold[k].sum()), int(played.death[k].sum()),
        )
        for k in order
    ]  # fmt: skip
