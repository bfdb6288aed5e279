"""Dreams: frames that the world model makes one after the other, under a policy or under given actions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engines.training.draws import Random, randn
from projects.agent.dynamics import Actions, Cache, Dynamics
from projects.agent.heads import PolicyHead, RewardHead
from projects.agent.shortcut import context_level, denoise, noised


@dataclass(frozen=True)
class Dreaming:
    """How frames are made: `steps` passes from noise to each, and `noise` on the frames that are looked back at."""

    steps: int = 4
    noise: float = 0.1
    generator: Random = None
    """Of all draws; torch's own where None."""


@dataclass(frozen=True)
class Dream:
    """What was dreamed after a context of true frames, H frames long.

    latents: (batch, H, C, height, width). agent: (batch, H + 1, width), that of the last true frame first. movement:
    (batch, H) and abilities: (batch, H, 8), action k chosen at agent k. reward: (batch, H), of the transition that
    action k began.
    """

    latents: Tensor
    agent: Tensor
    movement: Tensor
    abilities: Tensor
    reward: Tensor


def look_back(
    dynamics: Dynamics, latents: Tensor, actions: Actions, present: Tensor, dreaming: Dreaming
) -> tuple[Tensor, Cache]:
    """Agent tokens (batch, time, width) of true frames (batch, time, C, H, W), and the memory of them."""
    tau = torch.where(present, context_level(dreaming.noise, dynamics.finest), 0.0)
    size = torch.full_like(tau, 1 / dynamics.finest)
    return dynamics.fill(noised(latents, tau, dreaming.generator), tau, size, actions)


def look(
    dynamics: Dynamics, cache: Cache, latents: Tensor, actions: Actions, dreaming: Dreaming
) -> tuple[Tensor, Cache]:
    """The agent token (batch, width) of one frame more (batch, C, H, W), and the memory with it."""
    tau = latents.new_full((len(latents),), context_level(dreaming.noise, dynamics.finest))
    size = torch.full_like(tau, 1 / dynamics.finest)
    _, agent, after = dynamics.step(cache, noised(latents, tau, dreaming.generator), tau, size, actions, keep=True)
    return agent, after


def next_frame(dynamics: Dynamics, cache: Cache, actions: Actions, dreaming: Dreaming) -> Tensor:
    """The frame (batch, C, H, W) that `actions` produce; it is not remembered until it is looked at."""
    like = dynamics.out.weight

    def clean(z: Tensor, tau: float, size: float) -> Tensor:
        each = z.new_full((len(z),), tau)
        return dynamics.step(cache, z, each, torch.full_like(each, size), actions, keep=False)[0].float()

    shape = (len(actions.movement), *dynamics.latent)
    noise = randn(shape, dreaming.generator, like.device)
    return denoise(clean, noise, dreaming.steps)


@torch.no_grad()
def imagine(
    dynamics: Dynamics, policy: PolicyHead, reward: RewardHead, latents: Tensor, actions: Actions, present: Tensor,
    horizon: int, dreaming: Dreaming,
) -> Dream:  # fmt: skip
    """`horizon` frames under `policy` after true frames (batch, time, C, H, W)."""
    tokens, cache = look_back(dynamics, latents, actions, present, dreaming)
    agents, frames, chosen = [tokens[:, -1]], [], []
    for _ in range(horizon):
        movement, abilities = policy.act(agents[-1], generator=dreaming.generator)
        action = Actions(movement, abilities, torch.ones_like(movement, dtype=torch.bool))
        frames.append(next_frame(dynamics, cache, action, dreaming))
        agent, cache = look(dynamics, cache, frames[-1], action, dreaming)
        agents.append(agent)
        chosen.append(action)
    agent = torch.stack(agents, dim=1)
    return Dream(
        torch.stack(frames, dim=1),
        agent,
        torch.stack([action.movement for action in chosen], dim=1),
        torch.stack([action.abilities for action in chosen], dim=1),
        reward.twohot.mean(reward(agent[:, 1:])[..., 0, :]),
    )


@torch.no_grad()
def continued(
    dynamics: Dynamics, latents: Tensor, actions: Actions, present: Tensor, context: int, dreaming: Dreaming
) -> tuple[Tensor, Tensor]:
    """Frames after the first `context` of `latents`, dreamed under the true `actions` of all of them.

    Returns (batch, time - context, C, H, W), and the agent tokens (batch, time - context, width).
    """
    head = slice(0, context)
    _, cache = look_back(dynamics, latents[:, head], actions.at(head), present[:, head], dreaming)
    frames, agents = [], []
    for t in range(context, latents.shape[1]):
        action = actions.at(t)
        frames.append(next_frame(dynamics, cache, action, dreaming))
        agent, cache = look(dynamics, cache, frames[-1], action, dreaming)
        agents.append(agent)
    return torch.stack(frames, dim=1), torch.stack(agents, dim=1)
