"""The layers of the transformer: grouped-query attention within a frame, over time and across, and SwiGLU."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EPS = 1e-5
SOFTCAP = 50.0
"""Attention logits are 50 · tanh(logit / 50), as in the original."""
PERIOD = 4096
"""Frames after which the rotation begins again; contexts are shorter."""
INNER = 32
"""The width inside SwiGLU is the first multiple of this from 8/3 of the width on."""


class RMSNorm(nn.Module):
    """`x / rms(x) · weight` over the last axis, in float32; of several axes, weights for each."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.shape = shape
        self.weight = nn.Parameter(torch.ones(math.prod(shape)))  # flat, as what gets no weight decay is

    def forward(self, x: Tensor) -> Tensor:
        normed = F.rms_norm(x.float(), x.shape[-1:], None, EPS) * self.weight.float().view(self.shape)
        return normed.to(x.dtype)


class SwiGLU(nn.Module):
    """`W · (silu(U x) · V x)`, with U and V in one matrix."""

    def __init__(self, width: int) -> None:
        super().__init__()
        inner = INNER * math.ceil(8 * width / 3 / INNER)
        self.wide = nn.Linear(width, 2 * inner, bias=False)
        self.narrow = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, value = self.wide(x).chunk(2, dim=-1)
        answer: Tensor = self.narrow(F.silu(gate) * value)
        return answer


class Rotation(nn.Module):
    """RoPE over frame numbers, of any size without loss: its frequencies are whole turns per `PERIOD` frames."""

    table: Tensor

    def __init__(self, head_width: int) -> None:
        super().__init__()
        half = head_width // 2
        turns = (PERIOD / math.tau * PERIOD ** (-torch.arange(half, dtype=torch.float64) / half)).round().clamp(min=1)
        angles = torch.arange(PERIOD, dtype=torch.float64)[:, None] * turns % PERIOD * (math.tau / PERIOD)
        self.register_buffer("table", torch.stack([angles.cos(), angles.sin()]).float(), persistent=False)

    def forward(self, first: int, frames: int) -> Tensor:
        """Cosines and sines of `frames` frames from number `first` on: (2, frames, 1, 1, half a head)."""
        start = first % PERIOD
        if start + frames <= PERIOD:
            return self.table[:, start : start + frames, None, None]
        places = torch.arange(start, start + frames, device=self.table.device) % PERIOD
        return self.table[:, places, None, None]


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """`x` (..., frames, tokens, heads, head width) turned by its frame's angles."""
    cosines, sines = rotation.to(x.dtype).unbind(0)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cosines - b * sines, b * cosines + a * sines], dim=-1)


def by_group(q: Tensor, groups: int) -> Tensor:
    """Queries (..., n, heads, d) as (..., groups, heads / groups · n, d), beside the keys that they share."""
    *lead, n, heads, d = q.shape
    each = heads // groups
    apart = q.view(*q.shape[:-2], groups, each, d)
    return apart.movedim(-4, -2).reshape(*lead, groups, each * n, d)


def by_token(x: Tensor, heads: int) -> Tensor:
    """What `by_group` made, as (..., n, heads · d)."""
    *lead, groups, rows, d = x.shape
    each = heads // groups
    n = rows // each
    return x.reshape(*lead, groups, each, n, d).movedim(-2, -4).reshape(*lead, n, heads * d)


def weigh(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attention of grouped queries (..., groups, rows, d) to keys and values (..., groups, m, d).

    mask: (..., n, m) float, 1 where a query sees a key, with one axis of size 1 for the heads of a group before it.
        Hidden keys weigh exactly 0, and every query sees one key at least. Capped logits need no maximum taken off
        before the exponential, which halves the time of short rows on a CPU.
    """
    logits = (q @ k.mT).float() * (1 / (SOFTCAP * math.sqrt(q.shape[-1])))
    weights = (SOFTCAP * logits.tanh()).exp()
    if mask is not None:
        each = weights.shape[-2] // mask.shape[-2]
        apart = weights.view(*weights.shape[:-2], each, -1, weights.shape[-1])
        weights = (apart * mask).view(weights.shape)
    seen: Tensor = (weights / weights.sum(-1, keepdim=True)).to(v.dtype) @ v
    return seen


@dataclass(frozen=True)
class Past:
    """Keys and values of the newest frames of one layer: (batch, tokens, groups, context, head width).

    A ring: frame number t lies at t % context. Keys have their rotation, so their order is of no account.
    """

    keys: Tensor
    values: Tensor

    def keep(self, keys: Tensor, values: Tensor, first: int) -> None:
        """Put frames from number `first` on in: (batch, tokens, groups, time, head width)."""
        context, frames = self.keys.shape[-2], keys.shape[-2]
        if frames == 1:
            self.keys[..., first % context, :] = keys[..., 0, :]
            self.values[..., first % context, :] = values[..., 0, :]
            return
        left_out = max(0, frames - context)
        places = torch.arange(first + left_out, first + frames, device=keys.device) % context
        self.keys.index_copy_(-2, places, keys[..., left_out:, :].to(self.keys.dtype))
        self.values.index_copy_(-2, places, values[..., left_out:, :].to(self.values.dtype))


@dataclass(frozen=True)
class When:
    """What attention over time knows of the frames it is given.

    rotation: of `Rotation`, of these frames. mask: (time, time), or (batch, 1, 1, 1, time, time) where rows differ;
    None for one frame of a stream, number `first`, which sees itself and all that its `Past` holds.
    """

    rotation: Tensor
    mask: Tensor | None = None
    first: int = 0


class Attention(nn.Module):
    """Attention among the tokens of a frame."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        if width % heads or heads % groups or width // heads % 2:
            raise ValueError(
                f"width {width}, {heads} heads, {groups} kv_heads: heads must divide evenly, into even widths"
            )
        self.heads, self.groups, self.d = heads, groups, width // heads
        self.qkv = nn.Linear(width, (heads + 2 * groups) * self.d, bias=False)
        self.norm = RMSNorm(heads + groups, self.d)
        self.out = nn.Linear(width, width, bias=False)

    def project(self, x: Tensor, rotation: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (..., heads, d), keys and values (..., groups, d) of tokens (..., width)."""
        qkv = self.qkv(x).view(*x.shape[:-1], -1, self.d)
        both = self.norm(qkv[..., : self.heads + self.groups, :])
        if rotation is not None:
            both = rotate(both, rotation)
        return both[..., : self.heads, :], both[..., self.heads :, :], qkv[..., self.heads + self.groups :, :]

    def forward(self, x: Tensor, when: When, past: Past | None = None) -> Tensor:
        """Tokens (batch, time, tokens, width), each attending to all of its frame."""
        q, k, v = self.project(x)
        seen = weigh(by_group(q, self.groups), k.transpose(-3, -2), v.transpose(-3, -2))
        answer: Tensor = self.out(by_token(seen, self.heads))
        return answer


class TimeAttention(Attention):
    """Attention of each token to itself and to the same token of earlier frames."""

    def forward(self, x: Tensor, when: When, past: Past | None = None) -> Tensor:
        """Tokens (batch, time, tokens, width); `past` gets their keys and values."""
        q, k, v = (part.transpose(1, 2) for part in self.project(x, when.rotation))
        keys, values = k.transpose(-3, -2), v.transpose(-3, -2)
        if past is not None:
            past.keep(keys, values, when.first)
            if when.mask is None:
                known = min(when.first + 1, past.keys.shape[-2])
                keys, values = past.keys[..., :known, :], past.values[..., :known, :]
        seen = weigh(by_group(q, self.groups), keys, values, when.mask)
        answer: Tensor = self.out(by_token(seen, self.heads).transpose(1, 2))
        return answer


class CrossAttention(nn.Module):
    """Attention of some tokens to others, which do not see them."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.heads, self.groups, self.d = heads, groups, width // heads
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * groups * self.d, bias=False)
        self.q_norm, self.k_norm = RMSNorm(heads, self.d), RMSNorm(groups, self.d)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        """`x` (..., n, width) that attends to `tokens` (..., m, width)."""
        q = self.q_norm(self.q(x).view(*x.shape[:-1], self.heads, self.d))
        k, v = self.kv(tokens).view(*tokens.shape[:-1], 2, self.groups, self.d).unbind(-3)
        seen = weigh(by_group(q, self.groups), self.k_norm(k).transpose(-3, -2), v.transpose(-3, -2))
        answer: Tensor = self.out(by_token(seen, self.heads))
        return answer
