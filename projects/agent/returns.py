"""What is learned from dreams: returns, and a policy that makes good actions likelier (Dreamer 4, phase 3)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engines.training.draws import Share


def lambda_returns(
    rewards: Tensor, values: Tensor, discount: float, lam: float, goes_on: Tensor | None = None
) -> Tensor:
    """R_t = r_t + γ c_t ((1 - λ) v_{t+1} + λ R_{t+1}), with R_H = v_H: (batch, H).

    rewards: (batch, H), of the transition from t to t + 1. values: (batch, H + 1). goes_on: c, (batch, H), 0 where
    an episode ends with the transition; 1 where None.
    """
    discounts = torch.full_like(rewards, discount) if goes_on is None else discount * goes_on
    steady = rewards + discounts * (1 - lam) * values[:, 1:]
    after, found = values[:, -1], []
    for t in reversed(range(rewards.shape[1])):
        after = steady[:, t] + lam * discounts[:, t] * after
        found.append(after)
    return torch.stack(found[::-1], dim=1)


@dataclass(frozen=True)
class Preferred:
    """The terms of PMPO: the loss, and the mean KL to the prior (scalars)."""

    loss: Tensor
    kl: Tensor


def pmpo(
    log_prob: Tensor, advantage: Tensor, kl: Tensor, valid: Tensor | None = None, *,
    alpha: float = 0.5, beta: float = 0.3, share: Share | None = None,
) -> Preferred:  # fmt: skip
    """(1 - α) mean of log π over A < 0, less α · its mean over A ≥ 0, plus β times the mean KL to the prior.

    All of one shape. Only the sign of an advantage counts; a set without actions gives 0. valid: bool, what counts.
    share: of the rows of a whole batch those given here; the terms are then their part of its means.
    """
    counts = torch.ones_like(log_prob) if valid is None else valid.float()
    good, bad = (advantage >= 0) * counts, (advantage < 0) * counts

    def of_all(count: Tensor) -> Tensor:
        return count if share is None else share.total(count)

    def mean(values: Tensor, weights: Tensor) -> Tensor:
        return (torch.where(weights > 0, values, 0.0) * weights).sum() / of_all(weights.sum()).clamp(min=1)

    away = mean(kl, counts)
    return Preferred((1 - alpha) * mean(log_prob, bad) - alpha * mean(log_prob, good) + beta * away, away)
