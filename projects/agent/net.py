"""The whole model: the dynamics and its agent token, the heads that read it, and the prior that dreams are held to."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engines.basics.errors import UserError
from projects.agent.config import AgentConfig
from projects.agent.dynamics import Actions, Dynamics
from projects.agent.heads import PolicyHead, RewardHead, ValueHead
from projects.agent.imagine import Dreaming
from projects.agent.layout import ABILITIES, NEWEST, UNKNOWN
from projects.agent.rms import RunningRMS
from projects.agent.twohot import TwoHot
from projects.agent.windows import Statistics

SCALED = ("dynamics", "reward", "bc", "value")
"""Losses whose gradient is divided by their running RMS."""
JOINT = {"none": 0, "162": 18, "171": 19}
"""Movements of a joint policy, by the name of its kind."""


class AgentNet(nn.Module):
    """What a run trains and a checkpoint holds.

    dynamics: with the agent token. policy, reward, value: heads on that token. prior: the policy as it was before it
    began to learn in dreams. rms: by loss. mean, deviation: (C, 1, 1), of the latents as they are recorded.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(
        self, dynamics: Dynamics, policy: PolicyHead, prior: PolicyHead, reward: RewardHead, value: ValueHead
    ) -> None:
        super().__init__()
        self.dynamics, self.policy, self.reward, self.value = dynamics, policy, reward, value
        self.prior = prior.requires_grad_(False)
        self.rms = nn.ModuleDict({name: RunningRMS() for name in SCALED})
        channels = dynamics.latent[0]
        self.register_buffer("mean", torch.zeros(channels, 1, 1))
        self.register_buffer("deviation", torch.ones(channels, 1, 1))

    def set_statistics(self, normal: Statistics) -> None:
        """Take mean and deviation of the training data."""
        self.mean.copy_(torch.from_numpy(normal.mean)[:, None, None])
        self.deviation.copy_(torch.from_numpy(normal.deviation)[:, None, None])

    @torch.no_grad()
    def begin_dreams(self) -> None:
        """Make the prior what the policy is now."""
        for mine, now in zip(self.prior.parameters(), self.policy.parameters(), strict=True):
            mine.copy_(now)

    def normalised(self, latents: NDArray[np.float32]) -> Tensor:
        """Recorded latents (…, C, H, W) as the model sees them."""
        return (torch.from_numpy(latents).to(self.mean.device) - self.mean) / self.deviation

    def restored(self, latents: Tensor) -> NDArray[np.float32]:
        """Latents (…, C, H, W) of the model as they are recorded."""
        found: NDArray[np.float32] = (latents * self.deviation + self.mean).cpu().numpy()
        return found


def build(cfg: AgentConfig, latent: tuple[int, int, int], edition: int = NEWEST) -> AgentNet:
    """A new model for latents of so many channels, rows and columns, for a run of an `edition`.

    Raises `UserError` for sizes that do not fit.
    """
    model = cfg.model
    width, layers, heads = model.shape
    try:
        dynamics = Dynamics(
            latent, width=width, layers=layers, heads=heads, kv_heads=model.kv_heads, time_every=model.time_every,
            registers=model.registers, patch=model.patch, context=model.context, agent_layers=model.agent_layers,
            finest=cfg.objective.finest,
        )  # fmt: skip
    except ValueError as error:
        raise UserError(f"model: {error}.") from None

    def bins(span: float) -> TwoHot:
        return TwoHot(model.bins, span, in_symlog=model.twohot == "symlog")

    def policy() -> PolicyHead:
        return PolicyHead(width, model.hidden, model.offsets, JOINT[model.joint])

    return AgentNet(
        dynamics, policy(), policy(),
        RewardHead(width, model.hidden, model.offsets + (edition > 1), bins(model.reward_range)),
        ValueHead(width, model.hidden, bins(model.value_range)),
    )  # fmt: skip


def dreaming(cfg: AgentConfig, seed: int | None = None) -> Dreaming:
    """How the frames of a config's dreams are made, with draws of torch's own generator, or of one with a seed."""
    random = None if seed is None else torch.Generator().manual_seed(seed)
    return Dreaming(cfg.imagination.steps, cfg.imagination.noise, random)


def unknown(count: int, device: torch.device) -> Actions:
    """The actions of frames (count,) of which nothing is known."""
    return Actions(
        torch.full((count,), UNKNOWN, device=device),
        torch.zeros(count, len(ABILITIES), device=device),
        torch.zeros(count, dtype=torch.bool, device=device),
    )
