"""Shortcut forcing beside its formula, and dreams made of its steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engines.training.draws import Share
from projects.agent.dynamics import Actions, Dynamics
from projects.agent.heads import PolicyHead, RewardHead, ValueHead, cloning_loss, reward_loss
from projects.agent.imagine import Dreaming, continued, imagine, look_back
from projects.agent.returns import lambda_returns, pmpo
from projects.agent.rms import RunningRMS
from projects.agent.shortcut import context_level, denoise, draw_levels, half_steps, noised, ramp, shortcut_loss
from projects.agent.twohot import TwoHot
from tests.projects.agent.nets import LATENT, actions, dynamics, frames


def test_b15_level_1_is_clean_and_0_is_noise() -> None:
    latents = torch.randn(2, 3, *LATENT)
    tau = torch.tensor([[0.0, 0.25, 1.0], [1.0, 0.0, 0.5]])
    z = noised(latents, tau, torch.Generator().manual_seed(5))
    noise = torch.randn(latents.shape, generator=torch.Generator().manual_seed(5))
    torch.testing.assert_close(z, (1 - tau)[..., None, None, None] * noise + tau[..., None, None, None] * latents)
    assert torch.equal(z[1, 0], latents[1, 0])


def test_b15_the_loss_is_the_formula() -> None:
    """(1 - τ)² ‖(f - z) / (1 - τ) - (b' + b'') / 2‖² for each frame, the error for the smallest; ramp .9 τ + .1."""
    model = dynamics()
    (z, tau, size), acts = frames(model, 4, 6), actions(4, 6)
    latents, alone = torch.randn(z.shape), torch.tensor([False, True, False, False])
    wide = (..., None, None, None)
    goal = half_steps(model, z, tau, size, latents, acts, alone)
    with torch.no_grad():
        said = model(z, tau, size, acts, alone)[0]
        least = size == 1 / model.finest
        half = torch.where(least, size, size / 2)
        first = (model(z, tau, half, acts, alone)[0] - z) / (1 - tau)[wide]
        there = z + torch.where(least, 0.0, half)[wide] * first
        tau_there = tau + torch.where(least, 0.0, half)
        second = (model(there, tau_there, half, acts, alone)[0] - there) / (1 - tau_there)[wide]
        velocity = (said - z) / (1 - tau)[wide]
        shortcut = (1 - tau).square() * (velocity - (first + second) / 2).square().mean((2, 3, 4))
        plain = (said - latents).square().mean((2, 3, 4))
    assert 3 < least.sum() < 12
    torch.testing.assert_close((said - goal).square().mean((2, 3, 4)), torch.where(least, plain, shortcut))
    assert ramp(torch.tensor([0.0, 0.5, 1.0])).tolist() == pytest.approx([0.1, 0.55, 1.0])


@pytest.mark.parametrize("finest", [1, 2, 8, 64])
def test_b15_levels_are_on_the_grid_of_their_step(finest: int) -> None:
    """Of all sizes in the chosen rows, each as often; the rest has the smallest. Levels are 0 to 1 - size."""
    torch.manual_seed(0)
    levels = draw_levels(finest, (40, 100), 0.25, None, torch.device("cpu"))
    assert len(torch.unique(levels.rows)) == 10
    others = torch.ones(40, dtype=torch.bool)
    others[levels.rows] = False
    assert (levels.size[others] == 1 / finest).all()
    found, often = torch.unique(levels.size[levels.rows], return_counts=True)
    assert found.tolist() == [0.5**k for k in range(finest.bit_length() - 1, -1, -1)]
    assert often.min() > 0.7 * often.max()
    for size in found:
        steps = round(1 / float(size))
        drawn = torch.unique(levels.tau[levels.size == size] * steps)
        assert set(drawn.tolist()) <= set(range(steps))
        assert steps > 16 or len(drawn) == steps


def test_steps_are_compared_in_rows_that_count_first() -> None:
    counted = torch.arange(16) % 4 == 1
    for seed in range(20):
        torch.manual_seed(seed)
        assert counted[draw_levels(8, (16, 2), 0.25, counted, torch.device("cpu")).rows].all()


def loss_of(model: Dynamics, latents: Tensor, acts: Actions, present: Tensor, seed: int = 4, **given: Tensor) -> Tensor:
    torch.manual_seed(seed)
    forced = shortcut_loss(model, latents, acts, present, **given)  # type: ignore[arg-type]
    return (forced.loss * forced.weight).sum()


def test_a_rank_without_a_row_for_half_steps_makes_the_calls_of_the_others() -> None:
    """A model that ranks hold together is gathered by the calls of all of them."""
    model, calls = dynamics(), [0]
    model.register_forward_hook(lambda *given: calls.__setitem__(0, calls[0] + 1))
    latents, acts, present = torch.randn(2, 4, *LATENT), actions(2, 4), torch.ones(2, 4, dtype=torch.bool)

    class Others:
        def whole(self, rows: Tensor, size: int) -> Tensor:
            return torch.tensor([9.0, 9.0, 0.0, 1.0])

    for start in (0, 2):  # the rows for half steps are 2 and 3 of the four
        share = Share(start, start + 2, 4, Others(), torch.Generator().manual_seed(1))  # type: ignore[arg-type]
        calls[0] = 0
        shortcut_loss(model, latents, acts, present, share=0.5, random=share)
        assert calls == [3]


def test_weights_are_the_ramp_of_frames_and_rows_that_count() -> None:
    model, acts = dynamics(), actions(6, 4)
    latents, present = torch.randn(6, 4, *LATENT), torch.ones(6, 4, dtype=torch.bool)
    present[0, 2], present[3, 1] = False, False
    counted = torch.tensor([True, False, True, True, False, True])
    torch.manual_seed(4)
    forced = shortcut_loss(model, latents, acts, present, counted=counted)
    torch.manual_seed(4)
    levels = draw_levels(model.finest, (6, 4), 0.25, counted, latents.device)
    expected = torch.zeros(6, 4)
    for b in range(6):
        for t in range(4):
            if counted[b] and present[b, t]:
                expected[b, t] = 0.9 * levels.tau[b, t] + 0.1
    torch.testing.assert_close(forced.weight, expected)
    assert forced.agent.shape == (6, 4, 32)


def test_missing_frames_are_noise_to_the_model() -> None:
    """What is put in their place reaches nothing."""
    model, acts = dynamics(), actions(4, 5)
    latents, present = torch.randn(4, 5, *LATENT), torch.ones(4, 5, dtype=torch.bool)
    present[:, 2] = False
    before = loss_of(model, latents, acts, present)
    latents[:, 2] = 7.0
    assert torch.equal(loss_of(model, latents, acts, present), before)
    model.eval()
    first = look_back(model, latents, acts, present, Dreaming(generator=torch.Generator().manual_seed(0)))[0]
    latents[:, 2] = -3.0
    again = look_back(model, latents, acts, present, Dreaming(generator=torch.Generator().manual_seed(0)))[0]
    assert torch.equal(first, again)


def test_steady_frames_have_the_level_of_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    model, acts = dynamics(), actions(4, 5)
    seen = []

    def forward(z: Tensor, tau: Tensor, size: Tensor, *rest: object, **more: object) -> tuple[Tensor, Tensor]:
        seen.append((tau, size))
        return z, z.new_zeros(*tau.shape, 0)

    monkeypatch.setattr(model, "forward", forward)
    steady = torch.zeros(4, 5, dtype=torch.bool)
    steady[1], steady[2, 3:] = True, True
    shortcut_loss(model, torch.randn(4, 5, *LATENT), acts, torch.ones(4, 5, dtype=torch.bool), steady=steady, share=0)
    tau, size = seen[-1]
    assert (tau[steady] == 0.875).all()
    assert (size[steady] == 1 / 8).all()
    assert len(torch.unique(tau[~steady])) > 2


@pytest.mark.parametrize(
    ("noise", "finest", "level"), [(0.1, 8, 0.875), (0.1, 64, 58 / 64), (0.0, 8, 0.875), (0.4, 8, 0.625)]
)
def test_context_levels_are_trained_ones(noise: float, finest: int, level: float) -> None:
    assert context_level(noise, finest) == level


def test_half_steps_give_no_gradient_and_the_rest_does() -> None:
    model, acts = dynamics(), actions(4, 5)
    present = torch.ones(4, 5, dtype=torch.bool)
    (z, tau, size), latents = frames(model, 4, 5), torch.randn(4, 5, *LATENT)
    assert not half_steps(model, z, tau, size, latents, acts, None).requires_grad
    loss = loss_of(model, latents, acts, present)
    named = [(name, p) for name, p in model.named_parameters() if not name.startswith("agent.")]
    found = torch.autograd.grad(loss, [p for _, p in named])
    assert all(bool((grad != 0).any()) for grad in found)


def test_b5_zero_initialised_outputs_learn() -> None:
    """The last layer begins at zero and has a gradient at once, the layers before it from the second step on."""
    torch.manual_seed(0)
    model = Dynamics(LATENT, width=32, layers=2, heads=2, time_every=2, registers=1, patch=2)
    acts, present = actions(4, 5), torch.ones(4, 5, dtype=torch.bool)
    latents = torch.randn(1, 1, *LATENT).expand(4, 5, *LATENT)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    assert not model.out.weight.any()
    losses = []
    for step in range(25):
        loss = loss_of(model, latents, acts, present, seed=step)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        inner = model.into.weight.grad
        assert inner is not None
        assert bool(inner.any()) == (step > 0)
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < 0.2 * losses[0]


def test_denoising_ends_at_what_the_model_says() -> None:
    """A model that knows the answer is there after any number of steps, at levels of equal distance."""
    answer, asked = torch.randn(2, *LATENT), []

    def clean(z: Tensor, tau: float, size: float) -> Tensor:
        asked.append((tau, size))
        return answer

    torch.testing.assert_close(denoise(clean, torch.randn(2, *LATENT), 4), answer)
    assert asked == [(0.0, 0.25), (0.25, 0.25), (0.5, 0.25), (0.75, 0.25)]


def test_denoising_follows_the_velocity() -> None:
    """z + (f - z) / (1 - τ) · d, step by step, for predictions that depend on z."""
    noise = torch.randn(2, *LATENT, dtype=torch.float64)
    z = noise.clone()
    for tau in (0.0, 0.5):
        z = z + ((torch.sin(z) + tau) - z) / (1 - tau) * 0.5
    torch.testing.assert_close(denoise(lambda z, tau, size: torch.sin(z) + tau, noise, 2), z)


def heads() -> tuple[PolicyHead, RewardHead]:
    torch.manual_seed(1)
    return PolicyHead(32, 16, 3, last_std=1.0), RewardHead(32, 16, 3, TwoHot(11, 3.0), last_std=1.0)


def test_a_dream_is_what_the_model_says_of_its_own_frames() -> None:
    """Its agent tokens and rewards are those of the whole sequence of context and dreamed frames, with their noise."""
    model, (policy, reward) = dynamics(), heads()
    latents, acts = torch.randn(2, 4, *LATENT), actions(2, 4)
    present = torch.ones(2, 4, dtype=torch.bool)
    generator = torch.Generator().manual_seed(0)
    dream = imagine(model, policy, reward, latents, acts, present, 3, Dreaming(2, 0.1, generator))
    assert dream.latents.shape == (2, 3, *LATENT)
    assert not dream.agent.requires_grad
    # the same draws in the same order, over whole sequences
    random = torch.Generator().manual_seed(0)
    level, known = context_level(0.1, 8), torch.ones(2, 1, dtype=torch.bool)
    z = noised(latents, torch.full((2, 4), level), random)
    for k in range(3):
        count = z.shape[1]
        tau, size = torch.full((2, count), level), torch.full((2, count), 1 / 8)
        with torch.no_grad():
            agent = model(z, tau, size, acts)[1]
        torch.testing.assert_close(dream.agent[:, k], agent[:, -1], atol=1e-4, rtol=1e-4)
        movement, abilities = policy(agent[:, -1]).at(0).sample(random)
        assert torch.equal(dream.movement[:, k], movement)
        assert torch.equal(dream.abilities[:, k], abilities)
        parts = (acts.movement, movement[:, None]), (acts.abilities, abilities[:, None]), (acts.known, known)
        acts = Actions(*(torch.cat(part, dim=1) for part in parts))
        frame = torch.randn(2, *LATENT, generator=random)
        for step in (0.0, 0.5):
            longer = torch.cat([z, frame[:, None]], dim=1)
            now_tau = torch.cat([tau, torch.full((2, 1), step)], dim=1)
            now_size = torch.cat([size, torch.full((2, 1), 0.5)], dim=1)
            with torch.no_grad():
                clean = model(longer, now_tau, now_size, acts)[0][:, -1]
            frame = frame + (clean - frame) / (1 - step) * 0.5
        torch.testing.assert_close(dream.latents[:, k], frame, atol=1e-4, rtol=1e-4)
        z = torch.cat([z, noised(frame, torch.full((2,), level), random)[:, None]], dim=1)
        with torch.no_grad():
            token = model(z, torch.full((2, count + 1), level), torch.full((2, count + 1), 1 / 8), acts)[1][:, -1]
        expected = reward.twohot.mean(reward(token)[:, 0])
        torch.testing.assert_close(dream.reward[:, k], expected, atol=1e-3, rtol=1e-3)


def test_a_continuation_is_a_dream_under_the_true_actions() -> None:
    """Other actions later on change nothing before them, and the truth after the context is not looked at."""
    model, acts = dynamics(), actions(2, 7)
    acts = replace(acts, known=torch.ones_like(acts.known))
    latents, present = torch.randn(2, 7, *LATENT), torch.ones(2, 7, dtype=torch.bool)

    def dreamed() -> tuple[Tensor, Tensor]:
        return continued(model, latents, acts, present, 4, Dreaming(generator=torch.Generator().manual_seed(0)))

    made, agent = dreamed()
    assert made.shape == (2, 3, *LATENT)
    latents[:, 4:] = 0
    assert torch.equal(dreamed()[0], made)
    acts.movement[:, 5] = (acts.movement[:, 5] + 1) % 19
    other, other_agent = dreamed()
    assert torch.equal(other[:, 0], made[:, 0])
    assert torch.equal(other_agent[:, 0], agent[:, 0])
    assert not torch.allclose(other[:, 1], made[:, 1])


@pytest.mark.parametrize("joint", [0, 19])
def test_no_loss_looks_at_its_numbers(joint: int) -> None:
    """On a device without any a value that is looked at raises: so no step waits for a GPU."""
    with torch.device("meta"):
        model = Dynamics(LATENT, width=32, layers=2, heads=2, time_every=2, registers=1, patch=2)
        policy, twohot = PolicyHead(32, 16, 8, joint), TwoHot(11, 3.0)
        reward, value = RewardHead(32, 16, 8, twohot), ValueHead(32, 16, twohot)
        latents, known = torch.randn(8, 6, *LATENT), torch.ones(8, 6, dtype=torch.bool)
        acts = Actions(torch.zeros(8, 6, dtype=torch.long), torch.zeros(8, 6, 8), known)
        rows = torch.ones(8, dtype=torch.bool)
        forced = shortcut_loss(model, latents, acts, known, independent=rows, counted=rows, steady=known)
        losses = [
            reward_loss(reward, forced.agent, torch.zeros(8, 6), known, known, rows),
            cloning_loss(policy(forced.agent), acts.movement, acts.abilities, known, known, rows),
        ]
        scales = [RunningRMS()(loss.total, loss.count) for loss in losses]
        dream = imagine(model, policy, reward, latents, acts, known, 2, Dreaming())
        values = value.twohot.mean(value(dream.agent))
        returns = lambda_returns(dream.reward, values, 0.99, 0.95)
        chosen = policy(dream.agent[:, :-1]).at(0)
        found = pmpo(chosen.log_prob(dream.movement, dream.abilities), returns - values[:, 1:], chosen.kl(chosen))
        every = [(forced.loss * forced.weight).sum(), *(loss.total for loss in losses), *scales, found.loss]
        torch.autograd.backward(torch.stack(every).sum())
