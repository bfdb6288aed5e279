"""Mamba-2: scan, recurrence, step and transformers' torch path give the same numbers and gradients."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
import torch
from torch import Tensor

from projects.melee import ssd
from projects.melee.mamba import Mamba2, MambaStack, use_kernels
from tests.projects.melee.made import called

LENGTHS = (1, 7, 10, 60, 257)


def inputs(time: int, groups: int = 1) -> dict[str, Tensor]:
    """Random arguments of the scan: 2 streams, 4 heads of 6 values, a state of 5."""
    random = torch.Generator().manual_seed(time)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random)

    return {
        "x": draw(2, time, 4, 6),
        "dt": torch.nn.functional.softplus(draw(2, time, 4) - 2),
        "A": -draw(4).exp() * 4,
        "B": draw(2, time, groups, 5),
        "C": draw(2, time, groups, 5),
    }


def gradients(outputs: Tensor, given: dict[str, Tensor]) -> list[Tensor]:
    """Of a fixed random projection, since sums hide errors that cancel."""
    random = torch.Generator().manual_seed(1)
    loss = (outputs * torch.randn(outputs.shape, generator=random)).sum()
    return list(torch.autograd.grad(loss, list(given.values())))


@pytest.mark.parametrize("time", LENGTHS)
@pytest.mark.parametrize("groups", [1, 2])
def test_scan_is_the_recurrence_with_its_gradients(time: int, groups: int) -> None:
    given = {name: tensor.requires_grad_() for name, tensor in inputs(time, groups).items()}
    state = torch.randn(2, 4, 6, 5, generator=torch.Generator().manual_seed(2))
    for start in (None, state):
        slow, slow_state = ssd.recurrence(**given, state=start)
        expected = gradients(slow, given)
        for chunk in (16, 64):
            fast, fast_state = ssd.scan(**given, chunk=chunk, state=start)
            torch.testing.assert_close(fast, slow, atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(fast_state, slow_state, atol=1e-5, rtol=1e-5)
            for ours, theirs in zip(gradients(fast, given), expected, strict=True):
                torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def mixer(chunk: int = 32) -> Mamba2:
    torch.manual_seed(0)
    return Mamba2(48, d_state=16, headdim=12, chunk_size=chunk)


def transformers_mixer(time: int) -> Any:
    """The same layer as transformers has it, on its torch path."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    from transformers.models.mamba2.configuration_mamba2 import Mamba2Config
    from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer

    config = Mamba2Config(
        hidden_size=48, state_size=16, head_dim=12, num_heads=8, expand=2, n_groups=1, chunk_size=32,
        conv_kernel=4, use_bias=False, use_conv_bias=True, num_hidden_layers=1, layer_norm_epsilon=1e-5,
    )  # fmt: skip
    return Mamba2Mixer(config, layer_idx=0)


@pytest.mark.parametrize("time", LENGTHS)
def test_scan_is_step_is_transformers(time: int) -> None:
    ours, theirs = mixer(), transformers_mixer(time)
    theirs.load_state_dict(ours.state_dict())  # strict: every name and shape is shared
    x = torch.randn(2, time, 48, generator=torch.Generator().manual_seed(time))
    whole, state = ours(x)
    torch.testing.assert_close(whole, theirs(x), atol=1e-5, rtol=1e-5)
    running, steps = ours.initial(2, x.device), []
    for t in range(time):
        y, running = ours.step(x[:, t], running)
        steps.append(y)
    torch.testing.assert_close(torch.stack(steps, 1), whole, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(running.conv, state.conv)
    torch.testing.assert_close(running.ssm, state.ssm, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("time", LENGTHS)
def test_gradients_are_those_of_transformers(time: int) -> None:
    ours, theirs = mixer(), transformers_mixer(time)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, time, 48, generator=torch.Generator().manual_seed(time))
    for layer in (ours, theirs):
        output = layer(x)[0] if layer is ours else layer(x)
        torch.autograd.backward(output, torch.randn(output.shape, generator=torch.Generator().manual_seed(3)))
    for (name, parameter), other in zip(ours.named_parameters(), theirs.parameters(), strict=False):
        other = dict(theirs.named_parameters())[name]
        torch.testing.assert_close(parameter.grad, other.grad, atol=1e-4, rtol=1e-4, msg=called(name))


@pytest.mark.parametrize("cut", [1, 2, 5, 33])
def test_a_sequence_in_two_parts_is_the_whole(cut: int) -> None:
    torch.manual_seed(0)
    stack = MambaStack(64, layers=2, chunk_size=16)
    x = torch.randn(2, 40, 64)
    whole, end = stack(x)
    first, states = stack(x[:, :cut])
    second, states = stack(x[:, cut:], states)
    torch.testing.assert_close(torch.cat([first, second], 1), whole, atol=1e-5, rtol=1e-5)
    for ours, theirs in zip(states, end, strict=True):
        torch.testing.assert_close(ours.conv, theirs.conv, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(ours.ssm, theirs.ssm, atol=1e-5, rtol=1e-5)


def test_the_future_is_not_seen() -> None:
    layer = mixer(chunk=8)
    x = torch.randn(1, 20, 48, generator=torch.Generator().manual_seed(0))
    changed = x.clone()
    changed[:, 12:] += 1
    torch.testing.assert_close(layer(changed)[0][:, :12], layer(x)[0][:, :12])


def test_it_says_which_path_runs() -> None:
    assert "own scan, in torch on cpu" in use_kernels(mixer(), torch.device("cpu"))
    assert use_kernels(torch.nn.Linear(2, 2), torch.device("cpu")) == ""


def test_the_width_rule_forbids_the_kernels(caplog: pytest.LogCaptureFixture) -> None:
    stack = MambaStack(384, layers=1, chunk_size=16)
    assert "1676 wide" in use_kernels(stack, torch.device("cuda"))
    assert "multiple of 8" in caplog.text
    assert stack.mixers[0].kernel is None


def test_kernels_are_taken_where_they_can_be(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """With a stand-in for the package: the same numbers come out of a scan with its signature."""
    stack, own = MambaStack(256, layers=1, chunk_size=16), MambaStack(256, layers=1, chunk_size=16)
    own.load_state_dict(stack.state_dict())
    assert "cannot be used (ModuleNotFoundError" in use_kernels(stack, torch.device("cuda"))

    def kernel(
        x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, chunk: int, **more: Any
    ) -> tuple[Tensor, Tensor]:
        assert set(more) == {"initial_states", "return_final_states"}
        return ssd.scan(x, dt, A, B, C, chunk, more["initial_states"])

    package = types.ModuleType("mamba_ssm.ops.triton.ssd_combined")
    package.mamba_chunk_scan_combined = kernel  # type: ignore[attr-defined]
    for name in ("mamba_ssm", "mamba_ssm.ops", "mamba_ssm.ops.triton"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, package.__name__, package)
    assert use_kernels(stack, torch.device("cuda")) == "Mamba-2 runs on the kernels of mamba-ssm"
    x = torch.randn(2, 20, 256, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(stack(x)[0], own(x)[0])
