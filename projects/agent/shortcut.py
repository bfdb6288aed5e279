"""Shortcut forcing: noised frames, what the model should make of them, and steps from noise to a clean frame.

A frame at level tau is (1 - tau) · noise + tau · latents, so 1 is clean. The model predicts the clean frame, asked
for a step of size d: the smallest is trained on the data, larger ones on two of half their size (Dreamer 4, section 3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from engines.training.draws import Random, Share, rand, randint, randn
from projects.agent.dynamics import Actions, Dynamics


@dataclass(frozen=True)
class Levels:
    """Noise level and step size of each frame: (batch, time), and the sequences with larger steps: (chosen,) int64."""

    tau: Tensor
    size: Tensor
    rows: Tensor


@dataclass(frozen=True)
class Forced:
    """The dynamics loss of each frame, unweighted, its weight, both (batch, time), and the agent tokens of the pass."""

    loss: Tensor
    weight: Tensor
    agent: Tensor


def context_level(noise: float, finest: int) -> float:
    """The trained noise level next to 1 - `noise`: frames that are looked back at have it. Below 1, which none is."""
    return min(round((1 - noise) * finest), finest - 1) / finest


def noised(latents: Tensor, tau: Tensor, random: Random = None) -> Tensor:
    """`latents` (…, C, H, W) at the levels `tau` (…)."""
    noise = randn(latents.shape, random, latents.device, latents.dtype)
    return torch.lerp(noise, latents, tau[..., None, None, None])


def ramp(tau: Tensor) -> Tensor:
    """The weight of a level: noisy frames teach less."""
    return 0.9 * tau + 0.1


def draw_levels(
    finest: int,
    frames: tuple[int, int],
    share: float,
    first: Tensor | None,
    device: torch.device,
    random: Random = None,
) -> Levels:  # fmt: skip
    """Random levels on the grid of each step size.

    share: of the sequences, whose steps are of all sizes; the others have the smallest. first: (batch,) bool, sequences
    that are chosen before others.
    """
    batch = frames[0]
    turn = rand((batch,), random, device)
    if first is not None:
        turn = turn + (~first).float()
    if isinstance(random, Share):  # chosen among all rows of the batch; which of them are here is waited for
        rows = random.whole(turn).topk(round(share * random.size), largest=False).indices
        rows = rows[(rows >= random.start) & (rows < random.stop)] - random.start
    else:
        rows = turn.topk(round(share * batch), largest=False).indices
    coarse = torch.zeros(batch, dtype=torch.bool, device=device).index_fill(0, rows, True)
    halvings = randint(finest.bit_length(), frames, random, device)
    steps = torch.where(coarse[:, None], 2.0**halvings, float(finest))
    return Levels((rand(frames, random, device) * steps).floor() / steps, 1 / steps, rows)


def shortcut_loss(
    dynamics: Dynamics, latents: Tensor, actions: Actions, present: Tensor, *,
    independent: Tensor | None = None, counted: Tensor | None = None, steady: Tensor | None = None,
    share: float = 0.25, noise: float = 0.1, with_agent: bool = True, random: Random = None,
) -> Forced:  # fmt: skip
    """The loss of a batch of latents (batch, time, C, H, W), from draws of `random`.

    Args:
        present: (batch, time) bool; frames that are missing are all noise to the model, and weigh nothing.
        independent: (batch,) bool, rows whose frames do not see each other.
        counted: (batch,) bool, rows whose loss counts; all where None.
        steady: (batch, time) bool, frames that have the level of `noise`, as those that are looked back at.
        share: of the rows, for which two half steps are made.
    """
    levels = draw_levels(dynamics.finest, (len(latents), latents.shape[1]), share, counted, latents.device, random)
    tau, size = levels.tau, levels.size
    if steady is not None:
        tau = torch.where(steady, context_level(noise, dynamics.finest), tau)
        size = torch.where(steady, 1 / dynamics.finest, size)
    tau = torch.where(present, tau, 0.0)
    z = noised(latents, tau, random)
    target = latents
    if len(levels.rows) or isinstance(random, Share):
        none = not len(levels.rows)  # then this rank only makes the calls that the others make, with a row in vain
        rows = levels.rows.new_zeros(1) if none else levels.rows
        alone = None if independent is None else independent[rows]
        goal = half_steps(dynamics, z[rows], tau[rows], size[rows], latents[rows], actions.rows(rows), alone)
        target = latents if none else latents.index_copy(0, rows, goal)
    said, agent = dynamics(z, tau, size, actions, independent, with_agent)
    weight = ramp(tau) * present
    if counted is not None:
        weight = weight * counted[:, None]
    return Forced((said.float() - target).square().mean((2, 3, 4)), weight, agent)


@torch.no_grad()
def half_steps(
    dynamics: Dynamics,
    z: Tensor,
    tau: Tensor,
    size: Tensor,
    latents: Tensor,
    actions: Actions,
    independent: Tensor | None,
) -> Tensor:
    """What a step of `size` from `z` should predict: where two half steps lead; for the smallest size the data.

    With the mean velocity v of both, (1 - tau)² · |(f - z) / (1 - tau) - v|² = |f - (z + (1 - tau) v)|².
    """
    coarse = size > 1 / dynamics.finest
    half = torch.where(coarse, size / 2, size)
    wide = (..., None, None, None)
    first = dynamics(z, tau, half, actions, independent, with_agent=False)[0].float()
    velocity = (first - z) / (1 - tau)[wide]
    there = torch.where(coarse[wide], z + velocity * half[wide], z)
    tau_there = torch.where(coarse, tau + half, tau)
    second = dynamics(there, tau_there, half, actions, independent, with_agent=False)[0].float()
    mean = (velocity + (second - there) / (1 - tau_there)[wide]) / 2
    return torch.where(coarse[wide], z + (1 - tau)[wide] * mean, latents)


def denoise(clean: Callable[[Tensor, float, float], Tensor], noise: Tensor, steps: int) -> Tensor:
    """The clean frame that `steps` equal steps from `noise` lead to. clean: the prediction at (z, level, size)."""
    z, size = noise, 1 / steps
    for k in range(steps):
        tau = k * size
        z = z + (clean(z, tau, size) - z) * (size / (1 - tau))
    return z
