"""Heads, their losses over valid pairs, two-hot bins and the running size of a loss."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli, Categorical, kl_divergence

from projects.agent.config import AgentModel
from projects.agent.heads import (
    PRIORITY,
    Ahead,
    FactoredPolicy,
    JointPolicy,
    PolicyHead,
    RewardHead,
    ValueHead,
    cloning_loss,
    joint_action,
    reward_loss,
)  # fmt: skip
from projects.agent.rms import RunningRMS
from projects.agent.twohot import TwoHot, log_softmax, symexp, symlog

INF = math.inf


def windows(batch: int, time: int) -> dict[str, Tensor]:
    """Actions and rewards, of which some are not known."""
    random = torch.Generator().manual_seed(batch + time)

    def chance(p: float) -> Tensor:
        return torch.rand(batch, time, generator=random) < p

    return {
        "movement": torch.randint(-1, 19, (batch, time), generator=random),
        "abilities": torch.randint(0, 2, (batch, time, 8), generator=random).float(),
        "acted": chance(0.8),
        "reward": torch.randn(batch, time, generator=random) * 3,
        "rewarded": chance(0.8),
        "seen": chance(0.9),
    }


@pytest.mark.parametrize("time", [1, 2, 5, 9, 20])
@pytest.mark.parametrize("alone", [False, True])
def test_b1_b2_losses_are_means_over_the_valid_pairs(time: int, alone: bool) -> None:
    """Beside loops over frames and offsets, also where windows are shorter than the offsets (T < 9)."""
    torch.manual_seed(time)
    given = windows(3, time)
    independent = torch.tensor([False, True, False]) if alone else None
    agent = torch.randn(3, time, 6)
    head, cloned = RewardHead(6, 8, 9, TwoHot(9, 2.0), last_std=1.0), PolicyHead(6, 8, 8, last_std=1.0)
    policy = cloned(agent)
    assert isinstance(policy, FactoredPolicy)
    said_reward = head(agent).detach()
    rewards: list[float] = []
    actions: list[float] = []
    for b in range(3):
        for t in range(time):
            if not given["seen"][b, t]:
                continue
            for k in range(9):
                lone = alone and b == 1
                if t + k < time and given["rewarded"][b, t + k] and (k == 0 or not lone):
                    rewards.append(float(head.twohot.loss(said_reward[b, t, k], given["reward"][b, t + k])))
                ahead = t + k + 1
                if k < 8 and ahead < time and given["acted"][b, ahead] and not lone:
                    moved, used = given["movement"][b, ahead], given["abilities"][b, ahead]
                    bits, moves = policy.abilities[b, t, k].detach(), policy.movement[b, t, k].detach()
                    said = sum(
                        math.log(bit if on else 1 - bit)
                        for bit, on in zip(bits.sigmoid().tolist(), used.tolist(), strict=True)
                    )
                    said += float(moves.log_softmax(0)[moved]) if moved >= 0 else 0.0
                    actions.append(-said)
    reward = reward_loss(head, agent, given["reward"], given["rewarded"], given["seen"], independent)
    bc = cloning_loss(policy, given["movement"], given["abilities"], given["acted"], given["seen"], independent)
    assert int(reward.count) == len(rewards)
    assert int(bc.count) == len(actions)
    assert float(reward.total) == pytest.approx(sum(rewards), rel=1e-4)
    assert float(bc.total) == pytest.approx(sum(actions), rel=1e-4)
    assert bc.total.requires_grad


@pytest.mark.parametrize(("time", "pairs"), [(1, 0), (2, 1), (8, 28), (9, 36), (16, 92)])
def test_b1_pairs_of_a_whole_window(time: int, pairs: int) -> None:
    """Offsets 1 to 8: T - o of each that is below T. Rewards have offset 0 too, which is there in every frame."""
    known = torch.ones(1, time, dtype=torch.bool)
    assert int(Ahead.of(time, 8, 1, known.device).valid(known, known).sum()) == pairs
    assert int(Ahead.of(time, 9, 0, known.device).valid(known, known).sum()) == time + pairs
    assert pairs == sum(max(0, time - offset) for offset in range(1, 9))


def test_b2_the_number_of_offsets_divides_nothing() -> None:
    """Heads that all say the same have the loss of one of them, whatever their number."""
    agent, known = torch.zeros(2, 30, 4), torch.ones(2, 30, dtype=torch.bool)
    found = []
    for offsets in (1, 4, 8):
        head = RewardHead(4, 8, offsets, TwoHot(5, 1.0), last_std=0.0)
        loss = reward_loss(head, agent, torch.zeros(2, 30), known, known)
        found.append(float(loss.total / loss.count))
    assert found == pytest.approx([math.log(5)] * 3)


def test_b3_the_first_batch_is_not_its_own_scale() -> None:
    """1 before anything was seen, then the size of what was, without the pull of its start at nothing."""
    rms = RunningRMS(decay=0.9)
    total, count = torch.tensor(-12.0), torch.tensor(4)
    assert float(rms(total, count)) == 1
    assert float(rms.value()) == pytest.approx(3.0)
    assert float(rms(torch.tensor(10.0), torch.tensor(1))) == pytest.approx(1 / 3)
    seen = (0.1 * 100 + 0.9 * 0.1 * 9) / (0.1 + 0.9 * 0.1)
    assert float(rms.value()) == pytest.approx(math.sqrt(seen))


def test_b3_batches_without_the_loss_and_evaluations_change_nothing() -> None:
    rms = RunningRMS()
    rms(torch.tensor(6.0), torch.tensor(2))
    before = {name: value.clone() for name, value in rms.state_dict().items()}
    for total, count in ((0.0, 0), (math.nan, 1), (INF, 1)):
        assert float(rms(torch.tensor(total), torch.tensor(count))) == pytest.approx(1 / 3)
    rms.eval()
    rms(torch.tensor(50.0), torch.tensor(1))
    for name, value in rms.state_dict().items():
        assert torch.equal(value, before[name])


def test_b3_a_resumed_scale_is_the_same_to_the_bit() -> None:
    losses = [(torch.tensor(float(k * k + 1)), torch.tensor(k + 1)) for k in range(9)]
    whole, first, second = RunningRMS(), RunningRMS(), RunningRMS()
    expected = [whole(*loss) for loss in losses]
    for loss in losses[:4]:
        first(*loss)
    second.load_state_dict(first.state_dict())
    assert all(torch.equal(second(*loss), then) for loss, then in zip(losses[4:], expected[4:], strict=True))
    assert set(first.state_dict()) == {"square", "weight"}


def test_b4_bins_and_what_uses_them() -> None:
    """±5 in symlog units reaches 147.4; -10 to 4 takes 102 bins of ±5, 170 of ±3 and 25 of ±20."""
    assert float(TwoHot(255, 5.0).centres[-1]) == pytest.approx(147.41, abs=0.01)
    rewards = torch.linspace(-10, 4, 20_001)
    for span, bins in ((5.0, 102), (3.0, 170), (20.0, 25)):
        used = TwoHot(255, span).used(rewards)
        assert bins <= int((used > 0).sum()) <= bins + 3
    worst = -10 / (1 - 0.997**20)  # a return of deaths as often as they can be: values need more than ±5
    assert float(TwoHot(255, 5.0).centres[0]) > worst > float(TwoHot(255, AgentModel().value_range).centres[0])
    assert TwoHot(5, 1.0).used(torch.tensor([0.0, 0.0, 9.0, -0.1])).tolist() == [0, 1, 3, 0, 1]


@pytest.mark.parametrize("in_symlog", [False, True])
def test_b4_two_hot_is_the_slow_one(in_symlog: bool) -> None:
    """Weights by hand on the two bins around each value; values outside are at the ends."""
    twohot = TwoHot(9, 2.0, in_symlog=in_symlog)
    grid = torch.linspace(-2, 2, 9)
    centres = (grid if in_symlog else symexp(grid)).tolist()
    torch.manual_seed(0)
    values = torch.cat([torch.randn(40) * 4, symexp(grid), torch.tensor([-99.0, 99.0])])
    logits = torch.randn(len(values), 9)
    for value, row, said in zip(values, logits, twohot.loss(logits, values), strict=True):
        x = float(symlog(value)) if in_symlog else float(value)
        x = min(max(x, centres[0]), centres[-1])
        target = [max(0.0, 1 - abs(x - c) / gap) for c, gap in zip(centres, gaps(centres, x), strict=True)]
        assert sum(target) == pytest.approx(1)
        assert float(said) == pytest.approx(
            -sum(w * float(p) for w, p in zip(target, row.log_softmax(0), strict=True)), abs=1e-4
        )


def gaps(centres: list[float], x: float) -> list[float]:
    """The distance from each centre to its neighbour on the side of x."""
    last = len(centres) - 1
    return [abs(centres[min(last, k + 1) if x >= c else max(0, k - 1)] - c) or 1.0 for k, c in enumerate(centres)]


def test_b4_means_are_taken_in_raw_units() -> None:
    """Half 0 and half 4 are 2; with the mean in symlog units it is 1.24."""
    for in_symlog, mean in ((False, 2.0), (True, 1.236)):
        twohot = TwoHot(3, math.log(5), in_symlog=in_symlog)  # bins -4, 0 and 4
        assert float(twohot.mean(torch.tensor([-INF, 0.0, 0.0]))) == pytest.approx(mean, abs=1e-3)
    for span in (3.0, 10.0, 20.0):
        assert float(TwoHot(255, span).mean(torch.zeros(255))) == 0
    values = torch.tensor([-10.0, -0.3, 0.0, 0.07, 4.0])
    twohot = TwoHot(255, 3.0)
    lower, above = twohot.place(values)
    spread = (
        torch.zeros(5, 255)
        .scatter(1, lower[:, None], 1 - above[:, None])
        .scatter_add(1, lower[:, None] + 1, above[:, None])
    )
    torch.testing.assert_close(twohot.mean(spread.log()), values, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(symexp(symlog(values)), values)


@pytest.mark.parametrize("kind", ["reward", "value", "policy"])
def test_b5_zero_initialised_last_layers_learn(kind: str) -> None:
    """The last layer has a gradient at once, the ones before it from the second step on."""
    torch.manual_seed(0)
    agent, twohot = torch.randn(16, 6), TwoHot(15, 2.0)
    target, moved, used = agent[:, 0] * 2, (agent[:, 0] > 0).long() * 4, (agent[:, :1] > 0).float().expand(-1, 8)
    head: nn.Module
    if kind == "policy":
        head = PolicyHead(6, 16, 1, last_std=0.0)
    else:
        head = RewardHead(6, 16, 1, twohot, last_std=0.0) if kind == "reward" else ValueHead(6, 16, twohot)
    learning = {name for name, _ in head.named_parameters()}
    last = {name for name in learning if "last" in name}
    optimizer, losses = torch.optim.Adam(head.parameters(), lr=2e-2), []
    for step in range(60):
        said = head(agent)
        loss = -said.at(0).log_prob(moved, used) if kind == "policy" else twohot.loss(said.view(16, 15), target)
        optimizer.zero_grad()
        torch.autograd.backward(loss.mean())
        grads = {name: p.grad for name, p in head.named_parameters()}
        assert {name for name, grad in grads.items() if grad is not None and grad.any()} == (learning if step else last)
        optimizer.step()
        losses.append(float(loss.mean()))
    assert losses[-1] < 0.5 * losses[0]


def test_heads_learn_to_copy_in_40_steps() -> None:
    """A movement that the token shows: what the last layer sees is about as large as the token, not a tenth of it."""
    torch.manual_seed(0)
    tokens, moved, nothing = torch.randn(19, 96), torch.arange(19), torch.zeros(19, 8)
    head = PolicyHead(96, 128, 1)
    assert 0.5 < float(head.readout.body(tokens).std().detach()) < 1.2
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
    for _ in range(40):
        loss = -head(tokens).at(0).log_prob(moved, nothing).mean()
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    assert float(loss.detach()) < 0.1


def test_b14_masked_logits_give_no_nan() -> None:
    """0 · -inf never appears: in two-hot, means, policies and their gradients; a masked class has no chance."""
    twohot = TwoHot(5, 2.0)
    logits = torch.tensor([[0.0, 1.0, -INF, 0.5, -INF]] * 3, requires_grad=True)
    loss = twohot.loss(logits, torch.tensor([float(twohot.centres[1]), 0.0, 99.0]))
    assert loss.isfinite().all()
    assert float(loss[0]) == pytest.approx(-float(torch.tensor([0.0, 1.0, 0.5]).log_softmax(0)[1]))
    (grad,) = torch.autograd.grad(loss.sum() + twohot.mean(logits).sum(), logits)
    assert grad.isfinite().all()
    movement = torch.randn(1000, 19)
    movement[:, 5:] = -INF
    bits = torch.randn(1000, 8)
    bits[:, 3], bits[:, 4] = -INF, INF
    pairs = torch.randn(1000, 171)
    pairs[:, 40:] = -INF
    for policy, prior in (
        (FactoredPolicy(movement.requires_grad_(), bits.requires_grad_()), FactoredPolicy(torch.randn(1000, 19), bits)),
        (JointPolicy(pairs.requires_grad_(), 19), JointPolicy(torch.randn(1000, 171), 19)),
    ):
        moved, used = policy.sample(torch.Generator().manual_seed(0))
        assert bool((moved < 5).all()) or isinstance(policy, JointPolicy)
        values = policy.log_prob(moved, used), policy.entropy(), policy.kl(prior), prior.kl(policy), *policy.odds()
        assert all(value.isfinite().all() for value in values)
        total = sum((value.sum() for value in values), torch.zeros(()))
        given = [tensor for tensor in (movement, bits, pairs) if tensor.requires_grad]
        found: tuple[Tensor | None, ...] = torch.autograd.grad(total, given, allow_unused=True)
        assert all(grad is None or grad.isfinite().all() for grad in found)
    assert used[:, 5].sum() == 0  # abilities of the joint policy that 40 of the pairs hold are r and q


def test_b14_log_probabilities_are_in_float32() -> None:
    logits = torch.tensor([[3.0, -INF, 2.0]], dtype=torch.bfloat16)
    assert log_softmax(logits).dtype == torch.float32
    assert log_softmax(logits).exp().sum() == pytest.approx(1.0)
    assert TwoHot(3, 1.0).loss(logits, torch.tensor([0.5], dtype=torch.bfloat16)).dtype == torch.float32


def factored(seed: int) -> FactoredPolicy:
    random = torch.Generator().manual_seed(seed)
    return FactoredPolicy(torch.randn(7, 19, generator=random), torch.randn(7, 8, generator=random))


def test_factored_policies_are_torch_distributions() -> None:
    policy, prior = factored(0), factored(1)
    moves: Any = Categorical(logits=policy.movement)
    bits: Any = Bernoulli(logits=policy.abilities)
    moved, used = policy.sample(torch.Generator().manual_seed(0))
    torch.testing.assert_close(policy.log_prob(moved, used), moves.log_prob(moved) + bits.log_prob(used).sum(-1))
    torch.testing.assert_close(policy.log_prob(-torch.ones_like(moved), used), bits.log_prob(used).sum(-1))
    torch.testing.assert_close(policy.entropy(), moves.entropy() + bits.entropy().sum(-1))
    expected = kl_divergence(moves, Categorical(logits=prior.movement))
    expected = expected + kl_divergence(bits, Bernoulli(logits=prior.abilities)).sum(-1)
    torch.testing.assert_close(policy.kl(prior), expected)
    assert torch.equal(policy.greedy()[0], policy.movement.argmax(-1))
    assert torch.equal(policy.greedy()[1], (policy.abilities > 0).float())


def test_joint_actions_are_numbered_as_in_the_original() -> None:
    """movement + 19 · (1 + place among R, Q, E, W, D, F, item, recall), the first of several; 0 without any."""
    assert [("q", "w", "e", "r", "d", "f", "item", "b")[k] for k in PRIORITY] == [
        "r",
        "q",
        "e",
        "w",
        "d",
        "f",
        "item",
        "b",
    ]
    abilities = torch.zeros(5, 8)
    abilities[1, 0], abilities[2, [0, 3]], abilities[3, 7], abilities[4, [1, 2]] = 1, 1, 1, 1
    moved = torch.tensor([18, 2, 2, 17, 0])
    assert joint_action(moved, abilities, 19).tolist() == [18, 2 + 19 * 2, 2 + 19, 17 + 19 * 8, 19 * 3]
    assert int(joint_action(torch.tensor([17]), abilities[3:4], 18)) == 161


@pytest.mark.parametrize("movements", [18, 19])
def test_joint_policies_are_categorical_over_pairs(movements: int) -> None:
    random = torch.Generator().manual_seed(0)
    policy = JointPolicy(torch.randn(2000, 9 * movements, generator=random), movements)
    prior = JointPolicy(torch.randn(2000, 9 * movements, generator=random), movements)
    pairs: Any = Categorical(logits=policy.logits)
    moved, used = policy.sample(torch.Generator().manual_seed(0))
    assert used.sum(-1).max() == 1
    number = joint_action(moved, used, movements)
    torch.testing.assert_close(policy.log_prob(moved, used), pairs.log_prob(number))
    torch.testing.assert_close(policy.entropy(), pairs.entropy())
    torch.testing.assert_close(policy.kl(prior), kl_divergence(pairs, Categorical(logits=prior.logits)))
    assert torch.equal(joint_action(*policy.greedy(), movements), policy.logits.argmax(-1))
    by_movement, by_ability = policy.odds()
    torch.testing.assert_close(by_movement.sum(-1), torch.ones(2000))
    probabilities = pairs.probs[0].view(9, movements)
    torch.testing.assert_close(by_movement[0, :movements], probabilities.sum(0))
    assert by_ability[0].tolist() == pytest.approx(
        [float(probabilities[1 + PRIORITY.index(k)].sum()) for k in range(8)]
    )
    none = torch.full((2000,), 18)
    assert bool(policy.covers(none).all()) == (movements == 19)
    assert not policy.covers(-torch.ones(3, dtype=torch.long)).any()
    assert (policy.log_prob(none - 19, used) == 0).all()


def test_draws_are_as_likely_as_said() -> None:
    policy = FactoredPolicy(
        torch.tensor([[0.0, 1.0, 2.0] + [-INF] * 16]).expand(40_000, 19), torch.full((40_000, 8), 1.0)
    )
    moved, used = policy.sample(torch.Generator().manual_seed(0))
    expected = torch.tensor([0.0, 1.0, 2.0]).softmax(0)
    assert (moved.bincount(minlength=3) / 40_000).tolist() == pytest.approx(expected.tolist(), abs=0.01)
    assert float(used.mean()) == pytest.approx(1 / (1 + math.exp(-1)), abs=0.01)


@pytest.mark.parametrize("joint", [0, 18, 19])
def test_the_policy_head_acts_on_its_first_offset(joint: int) -> None:
    head, agent = PolicyHead(6, 8, 8, joint, last_std=1.0), torch.randn(5, 6)
    policy = head(agent)
    assert policy.offsets == 8
    expected = policy.at(0).greedy()
    assert all(torch.equal(a, b) for a, b in zip(head.act(agent, greedy=True), expected, strict=True))
    drawn = head.act(agent, generator=torch.Generator().manual_seed(3))
    again = policy.at(0).sample(torch.Generator().manual_seed(3))
    assert all(torch.equal(a, b) for a, b in zip(drawn, again, strict=True))
