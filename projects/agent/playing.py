"""A policy played in the arena: many episodes side by side, each frame decided on what was seen so far."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from engines.basics.reading import read_json
from projects.agent.demo.arena import Arena
from projects.agent.demo.task import NOTES
from projects.agent.dynamics import Actions
from projects.agent.heads import PolicyHead
from projects.agent.imagine import Dreaming, look
from projects.agent.layout import DEATH_REWARD, GOLD_REWARD
from projects.agent.net import AgentNet, unknown

MADE = "games of the arena"
PIECE = 10
"""Frames after which `play` says how far it is."""


def is_arena(folder: Path) -> bool:
    """Whether the games of a folder are the arena's, which can be played."""
    try:
        return read_json(folder / NOTES, dict[str, Any]).get("made") == MADE
    except (OSError, msgspec.DecodeError):
        return False


@dataclass(frozen=True)
class Episodes:
    """What happened, one row per episode: gold, death, movement and value (episodes, frames).

    abilities: (episodes, frames, 8). latents: (episodes, frames + 1, C, H, W) as the arena shows them, the first before
    any action, or none where they were not kept. value: what the value head said before each action.
    """

    gold: NDArray[np.float64]
    death: NDArray[np.bool_]
    movement: NDArray[np.int64]
    abilities: NDArray[np.bool_]
    value: NDArray[np.float32]
    latents: NDArray[np.float32]

    @property
    def rewards(self) -> NDArray[np.float64]:
        """Of each frame."""
        rewards: NDArray[np.float64] = GOLD_REWARD * self.gold + DEATH_REWARD * self.death
        return rewards

    @property
    def returns(self) -> NDArray[np.float64]:
        """The sum of rewards of each episode."""
        returns: NDArray[np.float64] = self.rewards.sum(axis=1)
        return returns


@torch.no_grad()
def play(
    net: AgentNet, head: PolicyHead, *, greedy: bool, episodes: int, frames: int, seed: int, noise: float,
    keep: bool = False,
) -> Generator[int, None, Episodes]:  # fmt: skip
    """Play `episodes` of so many frames with the policy `head`; yields the frames done, and gives what happened.

    The seed settles the arena and what is drawn. noise: on what is looked back at. keep: the latents too.
    """
    arena, how = Arena(), Dreaming(noise=noise, generator=torch.Generator().manual_seed(seed))
    arena.reset(episodes, seed)
    device = net.mean.device
    agent, cache = look(
        net.dynamics, net.dynamics.start(episodes), net.normalised(arena.latents()), unknown(episodes, device), how
    )
    seen, rows = [arena.latents()], []
    for frame in range(frames):
        policy = head(agent).at(0)
        movement, abilities = policy.greedy() if greedy else policy.sample(how.generator)
        value = net.value.twohot.mean(net.value(agent)).cpu().numpy()
        done = movement.cpu().numpy(), abilities.cpu().numpy() > 0.5
        rows.append((*arena.step(*done), *done, value))
        if keep:
            seen.append(arena.latents())
        chosen = Actions(movement, abilities, torch.ones_like(movement, dtype=torch.bool))
        agent, cache = look(net.dynamics, cache, net.normalised(arena.latents()), chosen, how)
        if (frame + 1) % PIECE == 0:
            yield frame + 1
    gold, death, moved, pressed, values = (np.stack(column, axis=1) for column in zip(*rows, strict=True))
    return Episodes(gold, death, moved, pressed, values, np.stack(seen, axis=1))
