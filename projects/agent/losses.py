"""The losses of all three phases: of recordings (dynamics, reward, cloning), and of dreams (value, policy)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import torch
from torch import Tensor

from engines.training.draws import Share, rand
from engines.training.project import Batch, Loss
from projects.agent.config import AgentConfig
from projects.agent.dynamics import Actions
from projects.agent.heads import cloning_loss, reward_loss
from projects.agent.imagine import Dream, Dreaming, imagine
from projects.agent.net import AgentNet, dreaming
from projects.agent.returns import lambda_returns, pmpo
from projects.agent.shortcut import shortcut_loss

DREAMED = frozenset({"value", "policy"})
"""Heads that learn in dreams; all others learn from recordings."""


def agent_losses(
    net: AgentNet, batch: Batch, cfg: AgentConfig, heads: Collection[str], share: Share | None = None
) -> dict[str, Loss]:
    """The losses of the `heads` that are on, and what is measured beside them; draws are torch's or the `share`'s."""
    losses: dict[str, Loss] = {}
    if DREAMED.isdisjoint(heads) or not DREAMED.issuperset(heads):
        losses |= recorded_losses(net, batch, cfg, heads, share)
    if not DREAMED.isdisjoint(heads):
        dream = dream_of(net, batch, cfg, replace(dreaming(cfg), generator=share))
        losses |= dreamed_losses(net, dream, cfg, share)
    if cfg.objective.normalise:
        losses = {name: _scaled(net, name, loss, share) for name, loss in losses.items()}
    return {name: loss for name, loss in losses.items() if name in heads or name in MEASURED}


MEASURED = ("kl", "entropy", "imagined", "gains")
"""Metrics of dreams: KL to the prior and entropy in nats, reward per frame, share of actions with an advantage."""


def recorded_losses(
    net: AgentNet, batch: Batch, cfg: AgentConfig, heads: Collection[str], share: Share | None = None
) -> dict[str, Loss]:
    """Shortcut forcing of the rows drawn from all windows; cloning from those drawn for their events; rewards of both.

    Rows that teach no dynamics are seen as an agent sees them, with the noise of what is looked back at, and so is a
    share of the frames of the others (`objective.looked_back`).
    """
    objective, present = cfg.objective, batch["present"]
    relevant = batch["relevant"]
    both = not objective.masked_halves or "bc" not in heads
    teaches = torch.ones_like(relevant) if both else ~relevant
    cloned = relevant | both
    independent = (rand(relevant.shape, share, present.device) < objective.independent) & teaches
    steady = ~teaches[:, None].expand_as(present)
    if objective.looked_back:
        steady = steady | (rand(present.shape, share, present.device) < objective.looked_back)
    hidden = rand(present.shape, share, present.device) < objective.history_dropout
    forced = shortcut_loss(
        net.dynamics, batch["latents"], actions(batch, batch["acted"] & ~hidden), present, independent=independent,
        counted=teaches, steady=steady, share=objective.shortcut_share, noise=cfg.imagination.noise,
        with_agent=not {"reward", "bc"}.isdisjoint(heads), random=share,
    )  # fmt: skip
    losses = {"dynamics": Loss((forced.loss * forced.weight).sum(), (forced.weight > 0).sum())}
    if "reward" in heads:
        losses["reward"] = reward_loss(
            net.reward, forced.agent, batch["reward"], batch["rewarded"], present, independent
        )
    if "bc" in heads:
        losses["bc"] = cloning_loss(
            net.policy(forced.agent), batch["movement"], batch["abilities"], batch["acted"],
            present & cloned[:, None], independent,
        )  # fmt: skip
    return losses


def dream_of(net: AgentNet, batch: Batch, cfg: AgentConfig, how: Dreaming) -> Dream:
    """A dream of the policy after the last frames of each row."""
    last = slice(-cfg.imagination.context, None)
    return imagine(
        net.dynamics, net.policy, net.reward, batch["latents"][:, last], actions(batch).at(last),
        batch["present"][:, last], cfg.imagination.horizon, how,
    )  # fmt: skip


def dreamed_losses(net: AgentNet, dream: Dream, cfg: AgentConfig, share: Share | None = None) -> dict[str, Loss]:
    """Value: cross-entropy to the λ-returns. Policy: PMPO. What they are made of is fixed: no gradient passes."""
    settings, before = cfg.imagination, dream.agent[:, :-1].detach()
    said = net.value(dream.agent)
    values = net.value.twohot.mean(said).detach()
    returns = lambda_returns(dream.reward, values, settings.discount, settings.lam)
    advantage = returns - values[:, :-1]
    policy, prior = net.policy(before).at(0), net.prior(before).at(0)
    away = policy.kl(prior)
    chosen = policy.log_prob(dream.movement, dream.abilities)
    preferred = pmpo(chosen, advantage, away, alpha=settings.alpha, beta=settings.beta, share=share)
    count = torch.full((), away.numel(), dtype=torch.float32, device=away.device)
    one = torch.ones_like(count) if share is None else torch.ones_like(count) * len(share) / share.size
    return {
        "value": Loss(net.value.twohot.loss(said[:, :-1], returns).sum(), count),
        "policy": Loss(preferred.loss, one),
        "kl": Loss(away.detach().sum(), count),
        "entropy": Loss(policy.entropy().detach().sum(), count),
        "imagined": Loss(dream.reward.sum(), count),
        "gains": Loss((advantage >= 0).float().sum(), count),
    }


def actions(batch: Batch, known: Tensor | None = None) -> Actions:
    """The actions of a batch, hidden where they are not `known: (batch, time)`."""
    return Actions(batch["movement"], batch["abilities"], batch["acted"] if known is None else known)


def _scaled(net: AgentNet, name: str, loss: Loss, share: Share | None) -> Loss:
    """With the factor that divides its gradient by the running size of the loss."""
    if name not in net.rms:
        return loss
    total, count = (loss.total, loss.count) if share is None else map(share.total, (loss.total, loss.count))
    return Loss(loss.total, loss.count, scale=net.rms[name](total, count))
