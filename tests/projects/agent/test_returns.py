"""Returns and PMPO beside loops over numbers."""

from __future__ import annotations

import pytest
import torch

from projects.agent.returns import lambda_returns, pmpo


@pytest.mark.parametrize("lam", [0.0, 0.95, 1.0])
@pytest.mark.parametrize("ends", [False, True])
def test_lambda_returns_are_the_recursion(lam: float, ends: bool) -> None:
    random = torch.Generator().manual_seed(0)
    rewards, values = torch.randn(3, 6, generator=random), torch.randn(3, 7, generator=random)
    goes_on = (torch.rand(3, 6, generator=random) < 0.7).float() if ends else None
    found = lambda_returns(rewards, values, 0.9, lam, goes_on)
    for b in range(3):
        after = float(values[b, 6])
        for t in reversed(range(6)):
            c = 1.0 if goes_on is None else float(goes_on[b, t])
            after = float(rewards[b, t]) + 0.9 * c * ((1 - lam) * float(values[b, t + 1]) + lam * after)
            assert float(found[b, t]) == pytest.approx(after, rel=1e-4, abs=1e-5)


def slow_pmpo(log_prob: list[float], advantage: list[float], kl: list[float], alpha: float, beta: float) -> float:
    good = [p for p, a in zip(log_prob, advantage, strict=True) if a >= 0]
    bad = [p for p, a in zip(log_prob, advantage, strict=True) if a < 0]
    loss = beta * sum(kl) / len(kl)
    if bad:
        loss += (1 - alpha) / len(bad) * sum(bad)
    if good:
        loss -= alpha / len(good) * sum(good)
    return loss


@pytest.mark.parametrize("shift", [-9.0, 0.0, 9.0], ids=["all bad", "both", "all good"])
def test_pmpo_is_its_formula(shift: float) -> None:
    """An empty set is 0, and an advantage of 0 is a good one."""
    random = torch.Generator().manual_seed(0)
    log_prob, advantage = -torch.rand(4, 5, generator=random), torch.randn(4, 5, generator=random) + shift
    advantage[0, 0], kl = 0.0 if shift >= 0 else -1.0, torch.rand(4, 5, generator=random)
    found = pmpo(log_prob, advantage, kl, alpha=0.6, beta=0.3)
    numbers = log_prob.flatten().tolist(), advantage.flatten().tolist(), kl.flatten().tolist()
    expected = slow_pmpo(*numbers, 0.6, 0.3)
    assert float(found.loss) == pytest.approx(expected, rel=1e-4)
    assert float(found.kl) == pytest.approx(float(kl.mean()))
    bigger = pmpo(log_prob, advantage * 100, kl, alpha=0.6, beta=0.3)
    assert torch.equal(bigger.loss, found.loss)


def test_pmpo_counts_what_is_valid_alone() -> None:
    """Also where what is left out is not finite; where nothing is left the loss is 0, with a gradient."""
    log_prob = torch.tensor([-1.0, -2.0, -torch.inf, -4.0], requires_grad=True)
    advantage, kl = torch.tensor([1.0, -1.0, 1.0, 1.0]), torch.tensor([0.1, 0.2, torch.inf, 0.4])
    valid = torch.tensor([True, True, False, True])
    found = pmpo(log_prob, advantage, kl, valid)
    assert float(found.loss.detach()) == pytest.approx(slow_pmpo([-1, -2, -4], [1, -1, 1], [0.1, 0.2, 0.4], 0.5, 0.3))
    (grad,) = torch.autograd.grad(found.loss, log_prob)
    assert grad.tolist() == pytest.approx([-0.25, 0.5, 0.0, -0.25])
    nothing = pmpo(log_prob, advantage, kl, torch.zeros(4, dtype=torch.bool))
    assert float(nothing.loss.detach()) == 0
    assert torch.autograd.grad(nothing.loss, log_prob)[0].tolist() == [0, 0, 0, 0]
