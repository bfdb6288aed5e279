"""What a model says of the frames ahead, beside what came: for its scores and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.training.project import Batch
from projects.agent.heads import Ahead, Policy
from projects.agent.layout import DEATH_REWARD, EVENT_GOLD, GOLD_REWARD
from projects.agent.net import AgentNet
from projects.agent.scores import auc, changes, r2, share
from projects.agent.twohot import log_softmax, symexp


@dataclass(frozen=True)
class Predictions:
    """Of windows (n, time): what was said at each frame, and what was to come.

    chance, reward: (n, time, offsets), of an event and in mean, from this frame's own reward on. event, came, counted:
    (n, time, offsets), what came. movement, abilities: (n, time) and (n, time, 8), the likeliest of the next frame.
    moved, used, acted: what was done there; changed: (n, time) its movement is another than this frame's.
    """

    chance: NDArray[np.float32]
    reward: NDArray[np.float32]
    event: NDArray[np.bool_]
    came: NDArray[np.float32]
    counted: NDArray[np.bool_]
    movement: NDArray[np.int64]
    abilities: NDArray[np.bool_]
    moved: NDArray[np.int64]
    used: NDArray[np.bool_]
    acted: NDArray[np.bool_]
    changed: NDArray[np.bool_]

    @classmethod
    def of(cls, net: AgentNet, agent: Tensor, policy: Policy, batch: Batch) -> Predictions:
        """From the agent tokens (batch, time, width) of a batch."""
        chance, reward = event_chance(net, agent)
        ahead = Ahead.of(agent.shape[1], net.reward.offsets, 0, agent.device)
        movement, abilities = policy.at(0).greedy()
        came = ahead.values(batch["reward"])
        following = Ahead.of(agent.shape[1], 1, 1, agent.device)
        acted = following.valid(batch["acted"], batch["present"])[..., 0]
        changed = torch.from_numpy(changes(batch["movement"].cpu().numpy(), batch["acted"].cpu().numpy()))
        found = (
            chance, reward, ahead.values(batch["event"]), came, ahead.valid(batch["rewarded"], batch["present"]),
            movement, abilities > 0.5, following.values(batch["movement"])[..., 0],
            following.values(batch["abilities"])[:, :, 0] > 0.5, acted,
            following.values(changed.to(agent.device))[..., 0] & acted,
        )  # fmt: skip
        return cls(*(part.cpu().numpy() for part in found))

    @classmethod
    def joined(cls, parts: Sequence[Predictions]) -> Predictions:
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))

    def values(self) -> dict[str, float | None]:
        """The scores by the names of the table's columns: rewards of this frame, actions of the next."""
        return {
            "reward_auc": self.auc(self.chance, 0),
            "reward_r2": self.r2(0),
            **self.right(self.movement, self.abilities),
        }

    def right(self, movement: NDArray[np.int64], abilities: NDArray[np.bool_]) -> dict[str, float | None]:
        """How often guesses of the next actions (n, time) and (n, time, 8), by whomever, are right."""
        right, pressed = movement == self.moved, abilities.any(-1) | self.used.any(-1)
        return {
            "movement_accuracy": share(right, self.acted & (self.moved >= 0)),
            "change_accuracy": share(right, self.changed),
            "ability_accuracy": share((abilities == self.used).mean(-1), self.acted),
            "press_accuracy": share((abilities == self.used).all(-1), self.acted & pressed),
        }

    def auc(self, chance: NDArray[np.floating], offset: int) -> float | None:
        """Of events so many frames ahead, by anybody's chances (n, time, offsets)."""
        counted = self.counted[..., offset]
        return auc(chance[..., offset][counted], self.event[..., offset][counted])

    def r2(self, offset: int) -> float | None:
        """Of rewards so many frames ahead."""
        counted = self.counted[..., offset]
        return r2(self.reward[..., offset][counted], self.came[..., offset][counted])


def event_chance(net: AgentNet, agent: Tensor) -> tuple[Tensor, Tensor]:
    """Chance of an event and mean reward (…, offsets) by the reward head, of agent tokens (…, width)."""
    logits = net.reward(agent)
    return log_softmax(logits).exp() @ event_bins(net).float(), net.reward.twohot.mean(logits)


def death_chance(net: AgentNet, agent: Tensor) -> Tensor:
    """Chance (…) that the transition that ended in this frame was a death: bins below half of its reward."""
    return log_softmax(net.reward(agent)[..., 0, :]).exp() @ (raw_bins(net) < DEATH_REWARD / 2).float()


def event_bins(net: AgentNet) -> Tensor:
    """Which bins are the rewards of `events`: deaths, and gold from the bin above 0 next to the least step on."""
    bins = raw_bins(net)
    gained = bins[bins > 0]
    least = gained[(gained - GOLD_REWARD * EVENT_GOLD).abs().argmin()]
    return (bins < DEATH_REWARD / 2) | (bins >= least)


def raw_bins(net: AgentNet) -> Tensor:
    """The rewards that the bins of the reward head are for: (bins,)."""
    twohot = net.reward.twohot
    return symexp(twohot.centres) if twohot.in_symlog else twohot.centres
