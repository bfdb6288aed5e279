"""The agent project as the training engine sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from engines.training.holdout import hold_out
from engines.training.order import MixedOrder, Order, ShuffledOrder
from engines.training.project import Batch, Context, Evaluation, Loss, Project, Result, Split, Table, TrainingLog
from engines.training.samples import Ranges
from projects.agent.config import AgentConfig
from projects.agent.evaluation import AgentEvaluation, AgentResult, Fixed
from projects.agent.export import layout, write_export
from projects.agent.layout import NEWEST, NONE
from projects.agent.losses import DREAMED, agent_losses
from projects.agent.net import AgentNet, build
from projects.agent.playing import is_arena
from projects.agent.recordings import Recording, read_recordings
from projects.agent.report import report_tables
from projects.agent.windows import Windows, statistics

PLAIN = ("embedding", "position", "register", "token", "base")
"""Words in the names of parameters that get no decay, as norms and biases do."""


class Agent(Project[AgentConfig]):
    """World model, cloned agent, and one trained in dreams. `data` comes first."""

    edition = NEWEST
    train: Windows
    validation: Fixed
    _arena: bool
    _device: torch.device

    def data(self, cfg: AgentConfig, device: torch.device) -> Split:
        path = Path(cfg.data.path)
        games = read_recordings(path, lambda done, total: self.data_progress(done, total, "games"))
        held = hold_out(
            path, [game.name for game in games], "game", fraction=cfg.data.val_fraction, seed=cfg.data.split_seed,
            validation=cfg.data.validation, test=cfg.data.test,
        )  # fmt: skip
        training = [games[index] for index in held.train]
        normal = statistics(training)
        self._device, self._arena = device, is_arena(path)
        self.train = Windows(training, normal, cfg.data.frames, cfg.data.stride, device)
        seen = Windows([games[index] for index in held.validation], normal, cfg.data.frames, cfg.data.stride, device)
        self.validation = Fixed(seen, cfg.played.windows)
        share = len(self.train.relevant) / self.train.count
        summary = held.summary("game") | {
            "windows": self.train.count,
            "with_event": len(self.train.relevant),
            "drawn_with_event": f"{_drawn(cfg, share):.3f}, of all windows {share:.3f}; an epoch counts draws",
            "validation_windows": len(self.validation),
        } | _unsaid(cfg, training)  # fmt: skip
        return Split(self.train, self.validation, summary, by_rows=True)

    def model(self, cfg: AgentConfig, data: Split) -> nn.Module:
        net = build(cfg, self._shape(), self.edition)
        net.set_statistics(self.train.statistics)
        return net

    def _shape(self) -> tuple[int, int, int]:
        channels, height, width = self.train.recordings[0].latents.shape[1:]
        return channels, height, width

    def metadata(self, cfg: AgentConfig, data: Split) -> Mapping[str, Any]:
        """What a checkpoint says beside its weights: the layout, and which games were not trained on."""
        validation = [game.name for game in self.validation.windows.recordings]
        return {
            "latents": list(self._shape()), "arena": self._arena, "layout": layout(),
            "validation_games": validation, "test_games": cfg.data.test,
        }  # fmt: skip

    def losses(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        return agent_losses(cast(AgentNet, model), batch, ctx.cfg, ctx.heads, ctx.share)

    def evaluation(self, cfg: AgentConfig, data: Split) -> Evaluation:
        return AgentEvaluation(cfg, self.validation, self._arena)

    def order(self, cfg: AgentConfig, data: Split, samples: Ranges) -> Order:
        """Half of the draws from all windows, half from those with an event; shuffled where no window has any."""
        count, relevant, batch = self.train.count, len(self.train.relevant), cfg.training.batch_size
        if not relevant:
            return ShuffledOrder(Ranges.of(range(count)), batch, cfg.training.seed)
        sets, share = [range(count), range(count, count + relevant)], cfg.data.relevant
        return MixedOrder(sets, [1 - share, share], batch, cfg.training.seed, draws=count)

    def blocks(self, model: nn.Module) -> Sequence[nn.Module]:
        dynamics = cast(AgentNet, model).dynamics
        return [*dynamics.layers, *dynamics.agent.blocks]

    def param_groups(self, model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
        """By what a parameter is called: trunk, agent token or heads, each with decay for its matrices alone."""
        groups: dict[tuple[str, bool], list[nn.Parameter]] = {}
        for name, parameter in model.named_parameters():
            key = part_of(name), parameter.ndim >= 2 and not any(word in name for word in PLAIN)
            groups.setdefault(key, []).append(parameter)
        return [
            {"params": parameters, "weight_decay": weight_decay if decays else 0.0, "part": part}
            for (part, decays), parameters in groups.items()
        ]

    def optimizer(self, groups: list[dict[str, Any]], cfg: AgentConfig) -> torch.optim.Optimizer:
        for group in groups:
            group["lr_scale"] = {stage: getattr(rates, group["part"]) for stage, rates in cfg.rates.items()}
        return super().optimizer(groups, cfg)

    def begin_stage(self, model: nn.Module, ctx: Context) -> None:
        """Where the policy begins to learn in dreams, what it is then is the prior; all its returns are new."""
        if ctx.heads & DREAMED:
            cast(AgentNet, model).begin_dreams()

    def report(self, cfg: AgentConfig, data: Split, model: nn.Module, result: Result) -> Mapping[str, Table]:
        assert isinstance(result, AgentResult)
        return report_tables(
            cfg,
            self.train,
            self.validation,
            cast(AgentNet, model),
            result,
            arena=self._arena,
            progress=self.report_progress,
        )

    def export(
        self, cfg: AgentConfig, folder: Path, model: nn.Module, data: Split, result: Result, log: TrainingLog
    ) -> None:
        write_export(folder, cfg, self.metadata(cfg, data), model.state_dict(), log)


def part_of(name: str) -> str:
    """The part of `PartRates` that a parameter belongs to, by its name."""
    if not name.startswith("dynamics."):
        return "heads"
    return "agent" if name.startswith("dynamics.agent") else "trunk"


def _drawn(cfg: AgentConfig, share: float) -> float:
    """The share of draws whose window holds an event: r + (1 - r) p."""
    return cfg.data.relevant + (1 - cfg.data.relevant) * share if share else 0.0


def _unsaid(cfg: AgentConfig, games: list[Recording]) -> dict[str, str]:
    """What a joint policy cannot say of the training games: several abilities at once; of 18 movements, none."""
    if cfg.model.joint == "none":
        return {}
    acted = np.concatenate([game.acted for game in games])
    several = np.concatenate([game.abilities.sum(axis=1) for game in games])[acted] > 1
    still = np.concatenate([game.movement for game in games])[acted] == NONE
    said = f"{several.sum()} of {len(several):,} frames have several abilities, of which the first is learned"
    if cfg.model.joint == "162":
        said += f"; {still.sum():,} without movement teach nothing"
    return {"joint_actions": said}
