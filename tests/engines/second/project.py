"""Its torch side: weighted losses, a scale, metrics, a prior, an order and an optimizer of its own, played episodes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engines.training.grouped_order import GroupedOrder
from engines.training.order import Order
from engines.training.project import Batch, Context, Evaluation, Loss, Piece, Project, Result, Split
from engines.training.samples import Ranges
from tests.engines.second.config import SecondConfig

EPISODES = 6
EPISODE_STEPS = 8
ACTIONS = 3


class Steps:
    """`count` observations of four numbers, what was done there, what came of it, and how much each counts."""

    def __init__(self, count: int, seed: int) -> None:
        random = torch.Generator().manual_seed(seed)
        self.x = torch.randn(count, 4, generator=random)
        self.action = self.x[:, :ACTIONS].argmax(1)
        self.gain = self.x.sum(1).tanh() * 5
        self.weight = 0.02 * torch.rand(count, generator=random)

    def __len__(self) -> int:
        return len(self.x)

    def batch(self, indices: Tensor, rng: np.random.Generator | None, ctx: Context | None = None) -> Batch:
        x = self.x[indices]
        if rng is not None and ctx is not None:  # noisier towards the end
            x = x + torch.from_numpy(rng.normal(0, 0.1 * ctx.progress, x.shape).astype(np.float32))
        return {
            "x": x, "action": self.action[indices], "gain": self.gain[indices], "weight": self.weight[indices],
        }  # fmt: skip


class Agent(nn.Module):
    square: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Dropout(0.1))
        self.policy = nn.Linear(16, ACTIONS)
        self.value = nn.Linear(16, 1)
        self.prior = copy.deepcopy(nn.Sequential(self.trunk[0], self.trunk[1], self.policy)).requires_grad_(False)
        self.register_buffer("square", torch.ones(()))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (batch, actions) and values (batch,) of `x: (batch, 4)`."""
        hidden = self.trunk(x)
        return self.policy(hidden), self.value(hidden)[:, 0]


class Played(Evaluation):
    """Accuracy on the recorded steps, and gains of episodes that the agent plays after them."""

    interfere: ClassVar[Callable[[Context], bool]] = lambda ctx: False
    """Whether this pass is to go on until somebody stops it."""

    def __init__(self, project: Second) -> None:
        self._project = project
        self._right = torch.zeros(())
        self._seen = 0
        self._gain = 0.0

    def add(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        self._right += (model(batch["x"])[0].argmax(1) == batch["action"]).sum()
        self._seen += len(batch["x"])
        return self._project.losses(model, batch, ctx)

    def after(self, model: nn.Module, ctx: Context) -> Generator[Piece]:
        random = torch.Generator().manual_seed(11)
        for episode in range(EPISODES):
            x = torch.randn(1, 4, generator=random)
            for _ in range(EPISODE_STEPS):
                action = int(model(x)[0].argmax())
                self._gain += float(x[0, action])
                x = 0.9 * x + 0.3 * torch.randn(1, 4, generator=random)
            yield episode + 1, EPISODES, "episodes"
            while episode == EPISODES // 2 and type(self).interfere(ctx):
                yield episode + 1, EPISODES, "episodes"

    def result(self) -> Result:
        accuracy, gain = float(self._right) / self._seen, self._gain / (EPISODES * EPISODE_STEPS)
        return Result(values={"accuracy": accuracy, "gain": gain}, score=accuracy + gain)


class Second(Project[SecondConfig]):
    def data(self, cfg: SecondConfig, device: torch.device) -> Split:
        return Split(train=Steps(384, 1), validation=Steps(128, 2), read_ahead=True)

    def build(self, cfg: SecondConfig) -> Agent:
        return Agent()

    def metadata(self, cfg: SecondConfig, data: Split) -> Mapping[str, Any]:
        return {"actions": ["left", "right", "jump"], "steps": len(data.train)}

    def order(self, cfg: SecondConfig, data: Split, samples: Ranges) -> Order:
        return GroupedOrder(samples, cfg.training.batch_size, cfg.training.seed, block=32, group=4)

    def param_groups(self, model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
        assert isinstance(model, Agent)
        heads = [*model.policy.parameters(), *model.value.parameters()]
        return [
            {"params": list(model.trunk.parameters()), "lr_scale": {"value": 0.1}},
            {"params": heads, "lr_scale": {"imitate": 2.0, "both": 0.5}, "weight_decay": weight_decay},
        ]

    def optimizer(self, groups: list[dict[str, Any]], cfg: SecondConfig) -> torch.optim.Optimizer:
        return torch.optim.SGD(groups, lr=cfg.training.lr, momentum=0.9)

    def begin_stage(self, model: nn.Module, ctx: Context) -> None:
        """What was learnt is the prior of what comes; the readout of values begins afresh."""
        assert isinstance(model, Agent)
        for kept, now in zip((model.prior[0], model.prior[2]), (model.trunk[0], model.policy), strict=True):
            kept.load_state_dict(now.state_dict())
        if ctx.stage == "value":
            model.value.weight.normal_()

    def evaluation(self, cfg: SecondConfig, data: Split) -> Played:
        return Played(self)

    def counts(self, batch: Batch, ctx: Context) -> Mapping[str, Tensor]:
        weight = batch["weight"].sum()
        return {"policy": weight, "value": weight}

    def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        logits, value = model(batch["x"])
        weight, count = batch["weight"], batch["weight"].sum()
        error = ((value - batch["gain"]).square() * weight).sum()
        square: Tensor = model.get_buffer("square")
        if model.training and "value" in ctx.heads:
            square.lerp_(error.detach() / count, 0.1)
        said, expected = logits.log_softmax(1), model.get_submodule("prior")(batch["x"]).log_softmax(1)
        ones = torch.ones_like(weight).sum()
        found = {
            "policy": Loss((F.cross_entropy(logits, batch["action"], reduction="none") * weight).sum(), count),
            "value": Loss(error, count, scale=square.rsqrt()),
            "entropy": Loss(-(said.exp() * said).sum(), ones),
        }
        if ctx.stage == "both":
            found["kl"] = Loss((said.exp() * (said - expected)).sum(), ones)
        return {name: loss for name, loss in found.items() if name in ctx.heads or name in ("entropy", "kl")}
