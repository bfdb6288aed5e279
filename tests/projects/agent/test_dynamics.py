"""The transformer: attention beside a slow one, streams beside whole sequences, and who sees whom."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from engines.training.precision import Precision
from projects.agent.attention import (
    SOFTCAP,
    Attention,
    CrossAttention,
    RMSNorm,
    Rotation,
    TimeAttention,
    When,
    rotate,
)  # fmt: skip
from projects.agent.config import AgentTraining
from projects.agent.dynamics import Actions, ActionToken, Dynamics
from projects.agent.heads import PolicyHead, RewardHead, ValueHead
from projects.agent.twohot import TwoHot
from tests.projects.agent.nets import LATENT, actions, dynamics, frames


def slow_attention(q: Tensor, k: Tensor, v: Tensor, seen: list[list[int]]) -> Tensor:
    """(n, heads · d) of queries (n, heads, d), keys and values (m, groups, d), one query and head at a time."""
    n, heads, d = q.shape
    each = heads // k.shape[1]
    rows = []
    for i in range(n):
        parts = []
        for head in range(heads):
            logits = torch.stack([q[i, head] @ k[j, head // each] / math.sqrt(d) for j in seen[i]])
            weights = (SOFTCAP * torch.tanh(logits / SOFTCAP)).softmax(0)
            parts.append(sum(w * v[j, head // each] for w, j in zip(weights, seen[i], strict=True)))
        rows.append(torch.cat([part for part in parts if isinstance(part, Tensor)]))
    return torch.stack(rows)


def test_attention_is_the_slow_one_within_a_frame() -> None:
    torch.manual_seed(0)
    module = Attention(24, 6, 2)
    nn.init.normal_(module.norm.weight, mean=4.0)  # large logits, so that the cap is felt
    x = torch.randn(2, 3, 5, 24)
    with torch.no_grad():
        out = module(x, When(torch.empty(0)))
        for b, t in ((0, 0), (1, 2)):
            q, k, v = module.project(x[b, t])
            expected = module.out(slow_attention(q, k, v, [list(range(5))] * 5))
            torch.testing.assert_close(out[b, t], expected, atol=1e-5, rtol=1e-5)


def test_attention_is_the_slow_one_over_time() -> None:
    torch.manual_seed(0)
    module = TimeAttention(24, 6, 3)
    x, rotation = torch.randn(2, 7, 3, 24), Rotation(4)(0, 7)
    with torch.no_grad():
        out = module(x, When(rotation, torch.tril(torch.ones(7, 7))))
        q, k, v = module.project(x, rotation)
        for b, token in ((0, 1), (1, 2)):
            causal = [list(range(t + 1)) for t in range(7)]
            expected = module.out(slow_attention(q[b, :, token], k[b, :, token], v[b, :, token], causal))
            torch.testing.assert_close(out[b, :, token], expected, atol=1e-5, rtol=1e-5)


def test_cross_attention_is_the_slow_one() -> None:
    torch.manual_seed(0)
    module = CrossAttention(24, 6, 2)
    x, tokens = torch.randn(3, 1, 24), torch.randn(3, 5, 24)
    with torch.no_grad():
        q = module.q_norm(module.q(x[1]).view(1, 6, 4))
        keys, values = module.kv(tokens[1]).view(5, 2, 2, 4).unbind(1)
        expected = module.out(slow_attention(q, module.k_norm(keys), values, [list(range(5))]))
        torch.testing.assert_close(module(x, tokens)[1], expected, atol=1e-5, rtol=1e-5)


def test_norm_is_by_the_root_mean_square() -> None:
    norm = RMSNorm(6)
    nn.init.normal_(norm.weight)
    x = torch.randn(4, 6)
    expected = x / x.square().mean(-1, keepdim=True).sqrt() * norm.weight
    torch.testing.assert_close(norm(x), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("first", [0, 17, 4090, 123_456_789])
def test_rotation_knows_distances_alone(first: int) -> None:
    """Products of rotated vectors are those of the first frames, however long a stream is, also where it wraps."""
    module, random = Rotation(8), torch.Generator().manual_seed(0)
    x = torch.randn(1, 9, 1, 1, 8, generator=random)
    near, far = rotate(x, module(0, 9))[0, :, 0, 0], rotate(x, module(first, 9))[0, :, 0, 0]
    torch.testing.assert_close(far @ far.T, near @ near.T, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(near @ near.T, x[0, :, 0, 0] @ x[0, :, 0, 0].T, atol=1e-2)


def test_an_action_is_the_sum_of_its_parts_and_the_base_alone_where_unknown() -> None:
    token = ActionToken(16)
    abilities = torch.zeros(3, 8)
    abilities[0, [2, 5]] = 1
    out = token(Actions(torch.tensor([4, -1, 7]), abilities, torch.tensor([True, True, False])))
    off, on = token.abilities.weight[:8], token.abilities.weight[8:]
    used = sum((on if k in (2, 5) else off)[k] for k in range(8))
    torch.testing.assert_close(out[0], token.base + token.movement.weight[4] + used)
    torch.testing.assert_close(out[1], token.base + off.sum(0))
    assert torch.equal(out[2], token.base)


def streamed(model: Dynamics, z: Tensor, tau: Tensor, size: Tensor, acts: Actions, start: int) -> tuple[Tensor, Tensor]:
    """Frames from `start` on, one at a time, each after a pass over noise that is not kept."""
    cache = model.start(len(z))
    if start:
        head = slice(0, start)
        _, cache = model.fill(z[:, head], tau[:, head], size[:, head], acts.at(head))
    clean, agent = [], []
    for t in range(start, z.shape[1]):
        model.step(cache, torch.randn_like(z[:, t]), tau[:, t], size[:, t], acts.at(t), keep=False)
        frame, token, cache = model.step(cache, z[:, t], tau[:, t], size[:, t], acts.at(t), keep=True)
        clean.append(frame)
        agent.append(token)
    assert cache.frames == z.shape[1]
    return torch.stack(clean, dim=1), torch.stack(agent, dim=1)


@pytest.mark.parametrize(("context", "start"), [(32, 0), (32, 5), (6, 0), (6, 4), (6, 11), (1, 0)])
def test_streaming_is_the_whole_sequence(context: int, start: int) -> None:
    """Also where the sequence is longer than the context, and where it begins with frames given at once."""
    model = dynamics(context=context)
    (z, tau, size), acts = frames(model, 3, 20), actions(3, 20)
    with torch.no_grad():
        clean, agent = model(z, tau, size, acts)
    streamed_clean, streamed_agent = streamed(model, z, tau, size, acts, start)
    torch.testing.assert_close(streamed_clean, clean[:, start:], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(streamed_agent, agent[:, start:], atol=1e-5, rtol=1e-5)


def test_a_context_hides_what_is_older() -> None:
    """Two layers over time with a context of 3 see 4 frames back and no more."""
    model = dynamics(context=3)
    (z, tau, size), acts = frames(model, 1, 9), actions(1, 9)
    with torch.no_grad():
        before = model(z, tau, size, acts)[0]
        z[:, 2] += 1
        moved = (model(z, tau, size, acts)[0] - before).abs().amax((0, 2, 3, 4)) > 0
    assert moved.tolist() == [False, False, True, True, True, True, True, False, False]


def test_the_dynamics_are_bit_equal_with_and_without_the_agent() -> None:
    model = dynamics()
    (z, tau, size), acts = frames(model, 3, 9), actions(3, 9)
    alone = torch.tensor([True, False, False])
    with_agent, agent = model(z, tau, size, acts, alone)
    without, none = model(z, tau, size, acts, alone, with_agent=False)
    assert torch.equal(with_agent, without)
    assert agent.shape == (3, 9, 32)
    assert none.shape == (3, 9, 0)
    nn.init.normal_(model.agent.task)
    changed, other = model(z, tau, size, acts, alone)
    assert torch.equal(changed, without)
    assert not torch.allclose(other, agent)


def test_the_agent_token_begins_as_the_task_and_the_action_of_its_frame() -> None:
    """Which is all that is left of it where its blocks add nothing."""
    model = dynamics()
    for name, parameter in model.agent.blocks.named_parameters():
        if "out." in name or "narrow." in name:
            nn.init.zeros_(parameter)
    (z, tau, size), acts = frames(model, 3, 7), actions(3, 7)
    with torch.no_grad():
        agent = model(z, tau, size, acts)[1]
        begun = model.agent.task + model.action_token(acts)
        expected = begun / begun.square().mean(-1, keepdim=True).sqrt() * model.agent.norm.weight
    torch.testing.assert_close(agent, expected, atol=1e-4, rtol=1e-4)


def outputs(model: Dynamics, z: Tensor, tau: Tensor, size: Tensor, acts: Actions) -> dict[str, Tensor]:
    """What is said of each frame: (batch, time, …)."""
    torch.manual_seed(3)
    heads = {
        "reward": RewardHead(32, 16, 3, TwoHot(11, 3.0)),
        "value": ValueHead(32, 16, TwoHot(11, 5.0), last_std=0.01),
    }
    policy = PolicyHead(32, 16, 3)
    with torch.no_grad():
        clean, agent = model(z, tau, size, acts)
        return {
            "clean": clean,
            "agent": agent,
            **{name: head(agent) for name, head in heads.items()},
            "movement": policy(agent).odds()[0],
        }


@pytest.mark.parametrize("part", ["z", "tau", "size", "movement", "abilities", "known"])
def test_b10_b16_the_future_changes_nothing_before_it(part: str) -> None:
    """Of the dynamics, the agent token, reward, value and policy; and it does change its own frame."""
    model, at = dynamics(), 5
    (z, tau, size), acts = frames(model, 2, 9), actions(2, 9)
    acts = replace(acts, known=torch.ones_like(acts.known))
    before = outputs(model, z, tau, size, acts)
    if part == "z":
        z[:, at] += 1
    elif part == "tau":
        tau[:, at] = torch.where(tau[:, at] > 0.5, 0.0, 0.75)
    elif part == "size":
        size[:, at] = torch.where(size[:, at] == 1, 0.25, 1.0)
    elif part == "movement":
        acts.movement[:, at] = (acts.movement[:, at] + 1) % 19
    elif part == "abilities":
        acts.abilities[:, at] = 1 - acts.abilities[:, at]
    else:
        acts.known[:, at] = False
    for name, after in outputs(model, z, tau, size, acts).items():
        assert torch.equal(after[:, :at], before[name][:, :at]), name
        assert (after[:, at:] != before[name][:, at:]).flatten(2).any(-1).all(), name


def test_b11_independent_rows_do_not_see_their_neighbours_and_the_others_do() -> None:
    """By example, not by batch; such a frame is what it would be in a sequence of its own."""
    model = dynamics()
    (z, tau, size), acts = frames(model, 3, 6), actions(3, 6)
    alone = torch.tensor([False, True, False])
    with torch.no_grad():
        clean, agent = model(z, tau, size, acts, alone)
        plain, plain_agent = model(z, tau, size, acts)
        z[:, 2] += 1
        moved, moved_agent = model(z, tau, size, acts, alone)
    for before, after in ((clean, moved), (agent, moved_agent)):
        changed = (after != before).flatten(2).any(-1)
        assert changed.tolist()[1] == [False, False, True, False, False, False]
        assert changed[0].tolist() == changed[2].tolist() == [False, False, True, True, True, True]
    torch.testing.assert_close(clean[[0, 2]], plain[[0, 2]], atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(agent[[0, 2]], plain_agent[[0, 2]], atol=1e-6, rtol=1e-6)
    z[:, 2] -= 1
    for t in range(6):
        only = slice(t, t + 1)
        with torch.no_grad():
            single, token = model(z[1:2, only], tau[1:2, only], size[1:2, only], acts.rows(torch.tensor([1])).at(only))
        torch.testing.assert_close(single[0, 0], clean[1, t], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(token[0, 0], agent[1, t], atol=1e-5, rtol=1e-5)


def test_b9_joint_training_reaches_the_trunk_and_a_frozen_trunk_passes_gradients_by() -> None:
    model = dynamics()
    (z, tau, size), acts = frames(model, 2, 4), actions(2, 4)

    def reached(loss: Tensor) -> set[str]:
        names, parameters = zip(*((n, p) for n, p in model.named_parameters() if p.requires_grad), strict=True)
        found: tuple[Tensor | None, ...] = torch.autograd.grad(loss, parameters, allow_unused=True)
        return {name for name, grad in zip(names, found, strict=True) if grad is not None and bool((grad != 0).any())}

    trunk = {name for name, _ in model.named_parameters() if not name.startswith("agent.")}
    agent = {name for name, _ in model.named_parameters()} - trunk
    assert reached(model(z, tau, size, acts)[0].square().sum()) == trunk
    assert reached(model(z, tau, size, acts)[1][..., 0].sum()) == agent | trunk - {
        "norm.weight",
        "out.weight",
        "out.bias",
    }
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in agent)
    assert reached(model(z, tau, size, acts)[1][..., 0].sum()) == agent


def test_b13_parts_and_what_decays_are_known_by_name() -> None:
    """The agent's blocks and task embedding begin with `agent.`; of matrices all but Linear's are embeddings."""
    model = dynamics()
    linear = {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    others = {name for name, p in model.named_parameters() if p.ndim >= 2} - linear
    assert others == {
        "positions", "registers", "action_token.movement.weight", "action_token.abilities.weight",
        "level_embedding.weight", "size_embedding.weight",
    }  # fmt: skip
    own = {name for name, _ in model.named_parameters() if name.startswith("agent.")}
    assert {"agent.task", "agent.norm.weight"} < own
    assert sum(name.startswith("agent.blocks.1.") for name in own) == 14


def counted(
    width: int, layers: int, heads: int, groups: int, registers: int, blocks: int, finest: int
) -> tuple[int, int]:
    """Parameters of the trunk and of the agent token, for latents of 32 × 16 × 16."""
    d, inner = width // heads, 32 * math.ceil(8 * width / 3 / 32)
    attention = width * (heads + 2 * groups) * d + (heads + groups) * d + width * width
    layer = 2 * width + attention + 3 * width * inner
    tokens = 256 * width + registers * width + (1 + 19 + 16) * width + (finest + 1 + finest.bit_length()) * width
    trunk = 32 * width + width + tokens + layers * layer + width + 32 * width + 32
    cross = 2 * width * width + width * 2 * groups * d + (heads + groups) * d
    return trunk, width + width + blocks * (2 * width + cross + layer)


@pytest.mark.parametrize(
    ("shape", "trunk", "agent"),
    [
        ((256, 6, 4), 4_541_216, 3_743_232),
        ((512, 12, 8), 35_045_408, 14_760_960),
        ((768, 18, 12), 117_169_952, 33_053_184),
        ((512, 24, 8), 69_866_528, 14_760_960),
    ],
    ids=["tiny", "small", "medium", "large"],
)
def test_sizes_have_their_parameters(shape: tuple[int, int, int], trunk: int, agent: int) -> None:
    width, layers, heads = shape
    with torch.device("meta"):
        model = Dynamics((32, 16, 16), width=width, layers=layers, heads=heads, agent_layers=4, finest=64)
    own = sum(p.numel() for p in model.agent.parameters())
    assert (sum(p.numel() for p in model.parameters()) - own, own) == (trunk, agent)
    assert counted(width, layers, heads, heads // 2, 8, 4, 64) == (trunk, agent)


def test_patches_lie_where_they_came_from() -> None:
    """With the token's width as wide as a patch, in and out can be the identity around empty layers."""
    model = dynamics(width=12, heads=2, registers=0)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    nn.init.eye_(model.into.weight)
    nn.init.eye_(model.out.weight)
    nn.init.ones_(model.norm.weight)
    z = torch.randn(1, 2, *LATENT)
    with torch.no_grad():
        said = model(z, torch.zeros(1, 2), torch.ones(1, 2), actions(1, 2))[0]
    for row in (0, 2):
        for column in (0, 2):
            patch = z[..., row : row + 2, column : column + 2]
            size = patch.square().mean((2, 3, 4), keepdim=True).sqrt()
            torch.testing.assert_close(
                said[..., row : row + 2, column : column + 2], patch / size, atol=1e-4, rtol=1e-4
            )


def test_b12_nothing_but_a_gpu_is_autocast_and_bf16_needs_no_scaler() -> None:
    cpu = torch.device("cpu")
    assert AgentTraining().amp == "auto"
    assert [Precision("auto", torch.device(kind)).name for kind in ("cpu", "mps")] == ["off", "off"]
    assert not any(Precision(kind, cpu).scaler.is_enabled() for kind in ("auto", "bf16"))


def test_b12_bf16_keeps_norms_and_logits_in_float32() -> None:
    """Under autocast the result is close to that of float32, however large the logits are."""
    model = dynamics()
    for name, parameter in model.named_parameters():
        if name.endswith("attention.norm.weight"):
            nn.init.constant_(parameter, 6.0)
    (z, tau, size), acts = frames(model, 2, 5), actions(2, 5)
    with torch.no_grad():
        exact = model(z, tau, size, acts)[0]
        with torch.autocast("cpu", torch.bfloat16):
            half, agent = model(z, tau, size, acts)
    assert agent.isfinite().all()
    assert (half.float() - exact).abs().mean() < 0.1 * exact.abs().mean()


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"patch": 3}, "do not divide"), ({"layers": 1}, "over time"), ({"width": 30}, "divide evenly")],
)
def test_sizes_that_do_not_fit(changes: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        dynamics(**changes)
