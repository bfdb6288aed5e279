"""Mamba-2: the mixer, with the parameter names that mamba_ssm and transformers share, and a stack of its blocks."""

from __future__ import annotations

import importlib
import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from projects.melee import ssd

CONV = 4
"""Frames that the convolution sees."""
DT_RANGE = (1e-3, 0.1)
DT_FLOOR = 1e-4
EPS = 1e-5


class RMSNorm(nn.Module):
    """`x / rms(x) · weight`, of `x · silu(gate)` where there is a gate."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor, gate: Tensor | None = None) -> Tensor:
        if gate is not None:
            x = x * F.silu(gate)
        return F.rms_norm(x.float(), self.weight.shape, self.weight.float(), EPS).to(x.dtype)


@dataclass(frozen=True)
class MixerState:
    """What a mixer keeps between frames.

    conv: (batch, conv width, 4), the newest frames before the convolution, oldest first. ssm: (batch, heads, headdim,
    state), float32.
    """

    conv: Tensor
    ssm: Tensor

    def select(self, rows: Tensor) -> MixerState:
        """The states of some rows, as an index or a mask of the batch."""
        return MixerState(self.conv[rows], self.ssm[rows])


class Mamba2(nn.Module):
    """The mixer: projection, short convolution, scan, gated norm, projection."""

    def __init__(
        self,
        d_model: int,
        d_state: int = 64,
        headdim: int = 64,
        expand: int = 2,
        ngroups: int = 1,
        chunk_size: int = 64,
    ) -> None:
        super().__init__()
        self.inner, self.d_state, self.ngroups, self.chunk_size = expand * d_model, d_state, ngroups, chunk_size
        if self.inner % headdim:
            raise ValueError(f"expand · d_model is {self.inner}, expected a multiple of headdim {headdim}")
        heads = self.inner // headdim
        self.conv_width = self.inner + 2 * ngroups * d_state
        self.in_proj = nn.Linear(d_model, self.inner + self.conv_width + heads, bias=False)
        self.conv1d = nn.Conv1d(self.conv_width, self.conv_width, CONV, groups=self.conv_width, padding=CONV - 1)
        low, high = (math.log(bound) for bound in DT_RANGE)
        dt = torch.empty(heads).uniform_(low, high).exp().clamp(min=DT_FLOOR)
        self.dt_bias = nn.Parameter(dt + torch.log(-torch.expm1(-dt)))  # so that softplus gives dt
        self.A_log = nn.Parameter(torch.empty(heads).uniform_(1, 16).log())
        self.D = nn.Parameter(torch.ones(heads))
        self.norm = RMSNorm(self.inner)
        self.out_proj = nn.Linear(self.inner, d_model, bias=False)
        self.kernel: Callable[..., Any] | None = None
        """mamba_ssm's scan, where it can be used."""

    def forward(self, x: Tensor, state: MixerState | None = None) -> tuple[Tensor, MixerState]:
        """Outputs (batch, time, d_model) of inputs of that shape, from `state` on, and the state after them."""
        gate, raw, dt = self._project(x)
        past = raw.new_zeros(len(raw), CONV - 1, self.conv_width) if state is None else state.conv[..., 1:].mT
        seen = torch.cat([past.to(raw.dtype), raw], dim=1)
        inner, B, C = self._split(F.silu(self._convolve(seen, raw.shape[1])))
        scan = self._kernel_scan if self.kernel is not None else self._own_scan
        y, ssm = scan(inner, dt, B, C, None if state is None else state.ssm)
        y = torch.addcmul(y, inner.to(y.dtype), self.D[:, None])
        newest = F.pad(seen, (0, 0, max(0, CONV - seen.shape[1]), 0))[:, -CONV:]
        return self.out_proj(self.norm(y.flatten(2).to(x.dtype), gate)), MixerState(newest.mT, ssm)

    def step(self, x: Tensor, state: MixerState) -> tuple[Tensor, MixerState]:
        """One frame (batch, d_model) from `state` on: the same as `forward`, without its time."""
        gate, raw, dt = self._project(x)
        conv = torch.cat([state.conv[..., 1:], raw[..., None].to(state.conv.dtype)], dim=-1)
        bias = self.conv1d.bias
        assert bias is not None
        mixed = F.silu((conv * self.conv1d.weight[:, 0]).sum(-1) + bias)
        inner, B, C = self._split(mixed)
        y, ssm = ssd.step(inner.float(), dt, self._decay(), B.float(), C.float(), state.ssm)
        y = y + inner * self.D[:, None]
        return self.out_proj(self.norm(y.flatten(1).to(x.dtype), gate)), MixerState(conv, ssm)

    def initial(self, batch: int, device: torch.device) -> MixerState:
        """The state before any frame."""
        heads, headdim = len(self.D), self.inner // len(self.D)
        conv = torch.zeros(batch, self.conv_width, CONV, device=device)
        return MixerState(conv, torch.zeros(batch, heads, headdim, self.d_state, device=device))

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        gate, raw, dt = torch.split(self.in_proj(x), [self.inner, self.conv_width, len(self.D)], dim=-1)
        return gate, raw, F.softplus(dt.float() + self.dt_bias)

    def _convolve(self, seen: Tensor, frames: int) -> Tensor:
        """The depthwise convolution as four shifted products: on a CPU half the time of `conv1d`."""
        mixed = self.conv1d.bias
        assert mixed is not None
        for k, weight in enumerate(self.conv1d.weight[:, 0].t().contiguous()):
            mixed = torch.addcmul(mixed, seen[:, k : k + frames], weight)
        return mixed

    def _split(self, mixed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        width = self.ngroups * self.d_state
        inner, B, C = torch.split(mixed, [self.inner, width, width], dim=-1)
        lead = mixed.shape[:-1]
        groups = (*lead, self.ngroups, self.d_state)
        return inner.reshape(*lead, len(self.D), -1), B.reshape(groups), C.reshape(groups)

    def _decay(self) -> Tensor:
        return -self.A_log.float().exp()

    def _own_scan(self, x: Tensor, dt: Tensor, B: Tensor, C: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        with torch.autocast(x.device.type, enabled=False):
            return ssd.scan(x.float(), dt, self._decay(), B.float(), C.float(), self.chunk_size, state)

    def _kernel_scan(self, x: Tensor, dt: Tensor, B: Tensor, C: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        assert self.kernel is not None
        B, C = B.to(x.dtype), C.to(x.dtype)
        y, last = self.kernel(
            x, dt, self._decay(), B, C, self.chunk_size, initial_states=state, return_final_states=True
        )
        return y, last.float()


class MambaStack(nn.Module):
    """Blocks `x + Mamba2(RMSNorm(x))`, one after the other."""

    def __init__(self, d_model: int, layers: int, chunk_size: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([RMSNorm(d_model) for _ in range(layers)])
        self.mixers = nn.ModuleList([Mamba2(d_model, chunk_size=chunk_size) for _ in range(layers)])

    def _blocks(self) -> Iterator[tuple[RMSNorm, Mamba2]]:
        for norm, mixer in zip(self.norms, self.mixers, strict=True):
            yield cast(RMSNorm, norm), cast(Mamba2, mixer)

    def forward(self, x: Tensor, states: list[MixerState] | None = None) -> tuple[Tensor, list[MixerState]]:
        """Outputs (batch, time, d_model) and the states of all blocks after them."""
        after = []
        for k, (norm, mixer) in enumerate(self._blocks()):
            y, state = mixer(norm(x), None if states is None else states[k])
            x = x + y
            after.append(state)
        return x, after

    def step(self, x: Tensor, states: list[MixerState]) -> tuple[Tensor, list[MixerState]]:
        """One frame (batch, d_model)."""
        after = []
        for (norm, mixer), state in zip(self._blocks(), states, strict=True):
            y, next_state = mixer.step(norm(x), state)
            x = x + y
            after.append(next_state)
        return x, after

    def initial(self, batch: int, device: torch.device) -> list[MixerState]:
        """The states before any frame."""
        return [mixer.initial(batch, device) for _, mixer in self._blocks()]


def scan_path(width: int, device: torch.device) -> tuple[Callable[..., Any] | None, str]:
    """mamba_ssm's scan where it can be used, and a sentence that says which path runs.

    width: of `in_proj`'s output.
    """
    if device.type != "cuda":
        return None, f"Mamba-2 runs on its own scan, in torch on {device.type}"
    if width % 8:
        return None, _own(f"in_proj is {width} wide, and the kernels of mamba-ssm need a multiple of 8")
    try:
        kernel = importlib.import_module("mamba_ssm.ops.triton.ssd_combined").mamba_chunk_scan_combined
    except (ImportError, OSError, AttributeError, RuntimeError) as error:
        return None, _own(f"mamba-ssm cannot be used ({type(error).__name__}: {error})")
    return kernel, "Mamba-2 runs on the kernels of mamba-ssm"


def _own(reason: str) -> str:
    sentence = f"Mamba-2 runs on its own scan, in torch: {reason}"
    logging.getLogger(__name__).warning(sentence)
    return sentence


def use_kernels(model: nn.Module, device: torch.device) -> str:
    """Give every mixer of `model` the scan that `scan_path` finds, and say which; empty where it has none."""
    mixers = [module for module in model.modules() if isinstance(module, Mamba2)]
    if not mixers:
        return ""
    kernel, sentence = scan_path(mixers[0].in_proj.out_features, device)
    for mixer in mixers:
        mixer.kernel = kernel
    return sentence
