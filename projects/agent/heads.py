"""What is read off an agent token: actions and rewards of the next frames, and the value of this one.

Heads say something of several frames ahead (multi-token prediction): offset o of frame t is about frame t + o. Frame t
was produced by action t and ended the transition of reward t, so policies have offsets 1 to L and rewards 0 to L.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engines.training.draws import Random, rand
from engines.training.project import Loss
from projects.agent.dynamics import ABILITIES, MOVEMENTS
from projects.agent.twohot import TwoHot, log_softmax

LAST_STD = 0.01
PRIORITY = (3, 0, 2, 1, 4, 5, 6, 7)
"""Which ability a joint action is, where several are used: R, Q, E, W, D, F, item, recall."""


class Readout(nn.Module):
    """Two layers of SiLU and a last one, whose weights begin small, or at zero.

    The first two begin by He, so that what the last one sees is as large as the token: with torch's own weights it is a
    tenth of it, and cloning took three times the steps to copy the last movement.
    """

    def __init__(self, width: int, hidden: int, outputs: int, last_std: float = LAST_STD) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        for layer in (self.body[0], self.body[2]):
            nn.init.kaiming_normal_(cast(nn.Linear, layer).weight, nonlinearity="relu")
        self.last = nn.Linear(hidden, outputs)
        nn.init.normal_(self.last.weight, std=last_std)
        nn.init.zeros_(self.last.bias)

    def forward(self, agent: Tensor) -> Tensor:
        """Outputs (…, outputs) of agent tokens (…, width)."""
        answer: Tensor = self.last(self.body(agent))
        return answer


class RewardHead(nn.Module):
    """Distributions over bins of the rewards at `offsets` frames from this one on: offset 0 first."""

    def __init__(self, width: int, hidden: int, offsets: int, twohot: TwoHot, last_std: float = LAST_STD) -> None:
        super().__init__()
        self.offsets, self.twohot = offsets, twohot
        self.readout = Readout(width, hidden, offsets * len(twohot.centres), last_std)

    def forward(self, agent: Tensor) -> Tensor:
        """Logits (…, offsets, bins) of agent tokens (…, width)."""
        answer: Tensor = self.readout(agent)
        return answer.view(*agent.shape[:-1], self.offsets, -1)


class ValueHead(nn.Module):
    """A distribution over bins of the return from this frame on."""

    def __init__(self, width: int, hidden: int, twohot: TwoHot, last_std: float = 0.0) -> None:
        super().__init__()
        self.twohot = twohot
        self.readout = Readout(width, hidden, len(twohot.centres), last_std)

    def forward(self, agent: Tensor) -> Tensor:
        """Logits (…, bins) of agent tokens (…, width)."""
        answer: Tensor = self.readout(agent)
        return answer


class Policy(ABC):
    """Distributions over actions, of any leading shape (…); what a head gives has (…, offsets)."""

    @property
    @abstractmethod
    def offsets(self) -> int:
        """Size of the last leading dimension."""

    @abstractmethod
    def at(self, offset: int) -> Policy:
        """Of one offset, the last leading dimension: 0 is the next frame."""

    @abstractmethod
    def covers(self, movement: Tensor) -> Tensor:
        """Where `log_prob` says something of an action with this movement: (…) bool."""

    @abstractmethod
    def log_prob(self, movement: Tensor, abilities: Tensor) -> Tensor:
        """Of actions, movement (…) and abilities (…, 8): (…). What is unknown of one counts as certain."""

    @abstractmethod
    def entropy(self) -> Tensor:
        """In nats: (…)."""

    @abstractmethod
    def kl(self, prior: Policy) -> Tensor:
        """KL[self ‖ prior] in nats: (…)."""

    @abstractmethod
    def sample(self, generator: Random = None) -> tuple[Tensor, Tensor]:
        """Movement (…) int64 and abilities (…, 8) float, drawn."""

    @abstractmethod
    def greedy(self) -> tuple[Tensor, Tensor]:
        """The likeliest movement (…) and abilities (…, 8)."""

    @abstractmethod
    def odds(self) -> tuple[Tensor, Tensor]:
        """Probabilities of each movement (…, 19) and of each ability (…, 8)."""


def _drawn(logits: Tensor, generator: Random) -> Tensor:
    """A class (…) of logits (…, classes), by the largest of logits with Gumbel noise: nothing waits for the device."""
    even = rand(logits.shape, generator, logits.device).clamp(1e-20, 1 - 1e-7)
    return (log_softmax(logits) - even.log().neg().log()).argmax(-1)


@dataclass(frozen=True)
class FactoredPolicy(Policy):
    """Movement (…, 19) and abilities (…, 8) apart, as logits."""

    movement: Tensor
    abilities: Tensor

    @property
    def offsets(self) -> int:
        return self.movement.shape[-2]

    def at(self, offset: int) -> FactoredPolicy:
        return FactoredPolicy(self.movement[..., offset, :], self.abilities[..., offset, :])

    def covers(self, movement: Tensor) -> Tensor:
        return torch.ones_like(movement, dtype=torch.bool)

    def log_prob(self, movement: Tensor, abilities: Tensor) -> Tensor:
        moved = log_softmax(self.movement).gather(-1, movement.clamp(min=0)[..., None])[..., 0]
        used = -F.binary_cross_entropy_with_logits(self._bits(), abilities, reduction="none").sum(-1)
        return torch.where(movement >= 0, moved, 0.0) + used

    def entropy(self) -> Tensor:
        logs, bits = log_softmax(self.movement), self._bits()
        used = bits.sigmoid()
        return -(logs.exp() * logs).sum(-1) - (used * F.logsigmoid(bits) + (1 - used) * F.logsigmoid(-bits)).sum(-1)

    def kl(self, prior: Policy) -> Tensor:
        assert isinstance(prior, FactoredPolicy)
        logs, bits, other = log_softmax(self.movement), self._bits(), prior._bits()
        used = bits.sigmoid()
        moved = (logs.exp() * (logs - log_softmax(prior.movement))).sum(-1)
        on, off = F.logsigmoid(bits) - F.logsigmoid(other), F.logsigmoid(-bits) - F.logsigmoid(-other)
        return moved + (used * on + (1 - used) * off).sum(-1)

    def sample(self, generator: Random = None) -> tuple[Tensor, Tensor]:
        even = rand(self.abilities.shape, generator, self.abilities.device)
        return _drawn(self.movement, generator), (even < self._bits().sigmoid()).float()

    def greedy(self) -> tuple[Tensor, Tensor]:
        return self.movement.argmax(-1), (self.abilities > 0).float()

    def odds(self) -> tuple[Tensor, Tensor]:
        return log_softmax(self.movement).exp(), self._bits().sigmoid()

    def _bits(self) -> Tensor:
        return self.abilities.float().clamp(-1e4, 1e4)


def joint_action(movement: Tensor, abilities: Tensor, movements: int) -> Tensor:
    """movement + `movements` · (0 without an ability, else 1 + the place of the first one by priority): (…) int64."""
    ranked = torch.stack([abilities[..., k] for k in PRIORITY], dim=-1) > 0.5
    first = torch.where(ranked.any(-1), 1 + ranked.float().argmax(-1), 0)
    return movement + movements * first


@dataclass(frozen=True)
class JointPolicy(Policy):
    """Pairs of a movement and at most one ability, as logits (…, movements · 9); of 18 movements none is 'none'."""

    logits: Tensor
    movements: int

    @property
    def offsets(self) -> int:
        return self.logits.shape[-2]

    def at(self, offset: int) -> JointPolicy:
        return JointPolicy(self.logits[..., offset, :], self.movements)

    def covers(self, movement: Tensor) -> Tensor:
        return (movement >= 0) & (movement < self.movements)

    def log_prob(self, movement: Tensor, abilities: Tensor) -> Tensor:
        covered = self.covers(movement)
        pair = joint_action(torch.where(covered, movement, 0), abilities, self.movements)
        return torch.where(covered, log_softmax(self.logits).gather(-1, pair[..., None])[..., 0], 0.0)

    def entropy(self) -> Tensor:
        logs = log_softmax(self.logits)
        return -(logs.exp() * logs).sum(-1)

    def kl(self, prior: Policy) -> Tensor:
        assert isinstance(prior, JointPolicy)
        logs = log_softmax(self.logits)
        return (logs.exp() * (logs - log_softmax(prior.logits))).sum(-1)

    def sample(self, generator: Random = None) -> tuple[Tensor, Tensor]:
        return self._apart(_drawn(self.logits, generator))

    def greedy(self) -> tuple[Tensor, Tensor]:
        return self._apart(self.logits.argmax(-1))

    def odds(self) -> tuple[Tensor, Tensor]:
        pairs = log_softmax(self.logits).exp().view(*self.logits.shape[:-1], 1 + ABILITIES, self.movements)
        moved = F.pad(pairs.sum(-2), (0, MOVEMENTS - self.movements))
        return moved, self._by_ability(pairs.sum(-1)[..., 1:])

    def _apart(self, pair: Tensor) -> tuple[Tensor, Tensor]:
        used = (pair // self.movements)[..., None] == torch.arange(1, 1 + ABILITIES, device=pair.device)
        return pair % self.movements, self._by_ability(used.float())

    @staticmethod
    def _by_ability(ranked: Tensor) -> Tensor:
        """Values in the order of priority (…, 8), in that of the abilities."""
        return torch.stack([ranked[..., PRIORITY.index(k)] for k in range(ABILITIES)], dim=-1)


class PolicyHead(nn.Module):
    """Actions at `offsets` frames from the next one on; joint: movements of a joint policy (18 or 19), 0 for apart."""

    def __init__(self, width: int, hidden: int, offsets: int, joint: int = 0, last_std: float = LAST_STD) -> None:
        super().__init__()
        self.offsets, self.joint = offsets, joint
        outputs = joint * (1 + ABILITIES) if joint else MOVEMENTS + ABILITIES
        self.readout = Readout(width, hidden, offsets * outputs, last_std)

    def forward(self, agent: Tensor) -> Policy:
        """Policies (…, offsets) of agent tokens (…, width)."""
        logits = self.readout(agent).view(*agent.shape[:-1], self.offsets, -1)
        if self.joint:
            return JointPolicy(logits, self.joint)
        return FactoredPolicy(logits[..., :MOVEMENTS], logits[..., MOVEMENTS:])

    def act(self, agent: Tensor, *, greedy: bool = False, generator: Random = None) -> tuple[Tensor, Tensor]:
        """The next frame's movement (…) and abilities (…, 8): drawn, or the likeliest."""
        policy = self(agent).at(0)
        found: tuple[Tensor, Tensor] = policy.greedy() if greedy else policy.sample(generator)
        return found


@dataclass(frozen=True)
class Ahead:
    """What lies ahead of each frame: frame t + first + k of frame t at (t, k).

    number: (time, offsets) int64, cut at the last frame. inside: (time, offsets) bool. same: (offsets,) bool, offset 0.
    """

    number: Tensor
    inside: Tensor
    same: Tensor

    @classmethod
    def of(cls, frames: int, offsets: int, first: int, device: torch.device) -> Ahead:
        """For windows of so many frames, from offset `first` on."""
        offset = torch.arange(first, first + offsets, device=device)
        number = torch.arange(frames, device=device)[:, None] + offset
        return cls(number.clamp(max=frames - 1), number < frames, offset == 0)

    def values(self, each: Tensor) -> Tensor:
        """Values (batch, time, …) as (batch, time, offsets, …)."""
        return each[:, self.number]

    def valid(self, known: Tensor, seen: Tensor, independent: Tensor | None = None) -> Tensor:
        """Pairs that count (batch, time, offsets): the value is `known`, and the frame it is predicted from is `seen`.

        known, seen: (batch, time) bool. Of `independent` rows (batch,) only offset 0 counts.
        """
        pairs = self.inside & self.values(known) & seen[..., None]
        return pairs if independent is None else pairs & (~independent[:, None, None] | self.same)


def reward_loss(
    head: RewardHead, agent: Tensor, reward: Tensor, rewarded: Tensor, seen: Tensor, independent: Tensor | None = None
) -> Loss:  # fmt: skip
    """Two-hot cross-entropy over all valid pairs. reward, rewarded, seen: (batch, time)."""
    ahead = Ahead.of(reward.shape[1], head.offsets, 0, agent.device)
    valid = ahead.valid(rewarded, seen, independent)
    each = head.twohot.loss(head(agent), ahead.values(reward))
    return Loss(torch.where(valid, each, 0.0).sum(), valid.sum())


def cloning_loss(
    policy: Policy, movement: Tensor, abilities: Tensor, acted: Tensor, seen: Tensor, independent: Tensor | None = None
) -> Loss:  # fmt: skip
    """-log π of the actions of the next frames, over all valid pairs. movement, acted, seen: (batch, time)."""
    ahead = Ahead.of(movement.shape[1], policy.offsets, 1, movement.device)
    moved = ahead.values(movement)
    valid = ahead.valid(acted, seen, independent) & policy.covers(moved)
    each = -policy.log_prob(moved, ahead.values(abilities))
    return Loss(torch.where(valid, each, 0.0).sum(), valid.sum())
