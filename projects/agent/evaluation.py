"""One evaluation: fixed windows, then self-fed windows, dreams and played episodes."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from engines.training.draws import randint, randn
from engines.training.project import Batch, Context, Evaluation, Loss, Piece, Result
from projects.agent.config import AgentConfig
from projects.agent.dynamics import Actions
from projects.agent.heads import cloning_loss, reward_loss
from projects.agent.imagine import look, look_back
from projects.agent.losses import DREAMED, actions, dream_of, dreamed_losses
from projects.agent.net import AgentNet, dreaming
from projects.agent.playing import Episodes, play
from projects.agent.predictions import Predictions, death_chance
from projects.agent.scores import share
from projects.agent.shortcut import noised
from projects.agent.windows import Windows

SEED = 1
"""Of everything that an evaluation draws."""
PLAYED_SEED = 10_000
"""Of the arena and of drawn actions, where an evaluation plays; a report plays other episodes."""
LEVELS = 4
"""Noise levels of the dynamics loss: 0, 1/4, 1/2, 3/4, drawn frame by frame and the same in each evaluation."""
DREAMS = 64
"""Windows after which is dreamed."""
CPU = torch.device("cpu")


@dataclass(frozen=True, kw_only=True)
class AgentResult(Result):
    """With the predictions that the scores were made of; None in a stage of the dynamics alone."""

    seen: Predictions | None


class Fixed:
    """Some windows of a source, each once, evenly spread: what an evaluation sees."""

    def __init__(self, windows: Windows, most: int) -> None:
        self.windows = windows
        chosen = np.unique(np.linspace(0, windows.count - 1, min(most, windows.count)).round().astype(np.int64))
        self.numbers = torch.from_numpy(chosen)
        """Of the windows that are seen: (count,)."""

    def __len__(self) -> int:
        return len(self.numbers)

    def batch(self, indices: Tensor, rng: np.random.Generator | None, ctx: Context | None = None) -> Batch:
        return self.windows.batch(self.numbers[indices], rng, ctx)


@dataclass
class AgentEvaluation(Evaluation):
    """What a model predicts of fixed windows, dreams after them, and plays.

    windows: what is validated on. arena: whether it can be played.
    """

    cfg: AgentConfig
    windows: Fixed
    arena: bool
    _heads: frozenset[str] = frozenset()
    kept: list[tuple[Tensor, dict[str, tuple[Tensor, Tensor]], Predictions | None]] = field(default_factory=list)
    """Errors of the dynamics (3,), totals and counts of the losses, and what was predicted, of each batch."""
    _values: dict[str, float | None] = field(default_factory=dict)
    _random: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(SEED))

    def add(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        assert isinstance(model, AgentNet)
        self._heads = ctx.heads
        errors, seen = torch.stack(self._errors(model, batch)), None
        losses = {"dynamics": Loss(errors[0], errors[2])}
        if ctx.heads - {"dynamics"}:
            predicted, seen = self._predicted(model, batch)
            losses |= predicted
        self.kept.append((errors, {name: (loss.total, loss.count) for name, loss in losses.items()}, seen))
        nothing = torch.zeros((), device=batch["present"].device)
        losses |= {name: Loss(nothing, nothing) for name in DREAMED}
        return {name: loss for name, loss in losses.items() if name in ctx.heads}

    def _errors(self, net: AgentNet, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Summed error of clean frames, the same with the actions of other windows, and how many frames count."""
        z, present = batch["latents"], batch["present"]
        level = randint(LEVELS, present.shape, self._random, z.device) / LEVELS
        tau = torch.where(present, level, 0.0)
        size = torch.full_like(tau, 1 / net.dynamics.finest)
        noisy = noised(z, tau, self._random)
        true = actions(batch)
        other = Actions(true.movement.roll(1, 0), true.abilities.roll(1, 0), true.known.roll(1, 0))
        errors = []
        for done in (true, other):
            said, _ = net.dynamics(noisy, tau, size, done, with_agent=False)
            errors.append(((said - z).square().mean((2, 3, 4)) * present).sum())
        return errors[0], errors[1], present.sum().float()

    def pass_over(self, count: int) -> None:
        windows = self.windows.windows
        randint(LEVELS, (count, windows.frames), self._random, CPU)
        randn((count, windows.frames, *windows.recordings[0].latents.shape[1:]), self._random, CPU)

    def _predicted(self, net: AgentNet, batch: Batch) -> tuple[dict[str, Loss], Predictions]:
        how = dreaming(self.cfg, SEED)
        agent, _ = look_back(net.dynamics, batch["latents"], actions(batch), batch["present"], how)
        policy = net.policy(agent)
        present = batch["present"]
        losses = {
            "reward": reward_loss(net.reward, agent, batch["reward"], batch["rewarded"], present),
            "bc": cloning_loss(policy, batch["movement"], batch["abilities"], batch["acted"], present),
        }
        return losses, Predictions.of(net, agent, policy, batch)

    def after(self, model: nn.Module, ctx: Context) -> Generator[Piece]:
        assert isinstance(model, AgentNet)
        if not ctx.heads - {"dynamics"}:
            return
        yield from self._self_fed(model)
        yield from self._dream(model)
        if self.arena and self.cfg.played.episodes:
            yield from self._play(model)

    def _self_fed(self, net: AgentNet) -> Generator[Piece]:
        """The policy's likeliest actions where it sees its own as the past, on true frames."""
        batch, how = self._some(self.cfg.played.self_fed), dreaming(self.cfg, SEED)
        true, frames = actions(batch), self.windows.windows.frames
        done, cache = true.at(0), net.dynamics.start(len(batch["present"]))
        moved, used = [], []
        for t in range(frames - 1):
            agent, cache = look(net.dynamics, cache, batch["latents"][:, t], done, how)
            movement, abilities = net.policy(agent).at(0).greedy()
            done = Actions(movement, abilities, torch.ones_like(movement, dtype=torch.bool))
            moved.append(movement)
            used.append(abilities)
            if t % 8 == 7:
                yield t + 1, frames, "frames self-fed"
        movement, abilities = torch.stack(moved, 1), torch.stack(used, 1)
        known = (batch["acted"] & (batch["movement"] >= 0))[:, 1:].cpu().numpy()
        right = (movement == batch["movement"][:, 1:]).cpu().numpy()
        self._values["movement_self_fed"] = share(right, known)
        right = (abilities == batch["abilities"][:, 1:]).cpu().numpy().mean(-1)
        self._values["ability_self_fed"] = share(right, batch["acted"][:, 1:].cpu().numpy())

    def _dream(self, net: AgentNet) -> Generator[Piece]:
        """What dreams promise, and the losses of the heads that learn from them."""
        batch = self._some(DREAMS)
        dream = dream_of(net, batch, self.cfg, dreaming(self.cfg, SEED))
        losses = dreamed_losses(net, dream, self.cfg)
        names = {"value": "value", "policy": "policy", "kl": "kl", "entropy": "entropy", "gains": "gains"}
        self._values |= {name: float(losses[key].total / losses[key].count) for name, key in names.items()}
        frames = self.cfg.played.frames
        self._values["imagined_return"] = float(dream.reward.mean()) * frames
        self._values["imagined_deaths"] = float(death_chance(net, dream.agent[:, 1:]).mean()) * frames
        yield 1, 1, "dreams"

    def _play(self, net: AgentNet) -> Generator[Piece]:
        settings = self.cfg.played
        playing = play(
            net, net.policy, greedy=False, episodes=settings.episodes, frames=settings.frames, seed=PLAYED_SEED,
            noise=self.cfg.imagination.noise,
        )  # fmt: skip
        episodes = yield from pieces(playing, settings.frames)
        self._values["played_return"] = float(episodes.returns.mean())
        self._values["played_deaths"] = float(episodes.death.sum(1).mean())

    def _some(self, count: int) -> Batch:
        """Evenly spread windows of those that are judged."""
        numbers = np.unique(np.linspace(0, len(self.windows) - 1, min(count, len(self.windows))).round())
        return self.windows.batch(torch.from_numpy(numbers.astype(np.int64)), None)

    def result(self) -> Result:
        error, shuffled, frames = torch.stack([errors for errors, _, _ in self.kept]).sum(0).tolist()
        found = [each for _, _, each in self.kept if each is not None]
        values: dict[str, float | None] = {"action_gap": (shuffled - error) / frames} | self._values
        if not found:
            return AgentResult(values=values, score=-error / frames, seen=None)
        seen = Predictions.joined(found)
        values |= seen.values()
        if self._heads & DREAMED:
            score = values.get("played_return", values["imagined_return"])
        else:
            score = -sum(self._loss(name) for name in self.kept[0][1])
        return AgentResult(values=values, score=score, seen=seen)

    def _loss(self, name: str) -> float:
        """The mean of a loss over the windows, by the weight that it has in the config."""
        total, count = (torch.stack(parts).sum() for parts in zip(*(of[name] for _, of, _ in self.kept), strict=True))
        return float(total / count) * float(getattr(self.cfg.loss_weights, name))


def pieces(playing: Generator[int, None, Episodes], total: int) -> Generator[Piece, None, Episodes]:
    """The frames that are played, of a `total`, as progress; gives the episodes."""
    while True:
        try:
            yield next(playing), total, "frames played"
        except StopIteration as stop:
            episodes: Episodes = stop.value
            return episodes
