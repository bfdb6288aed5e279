"""The state space duality scan of Mamba-2 (Dao and Gu 2024, arXiv 2405.21060, section 6), in plain torch.

Per head a state `h` of (headdim, state) obeys, with `a_t = A · dt_t`,

    h_t = exp(a_t) · h_{t-1} + dt_t · (x_t ⊗ B_t)        y_t = h_t C_t

`recurrence` computes just that, one frame after the other. `scan` gives the same from products of whole chunks: inside
a chunk as a masked attention, between chunks through the state at their ends. Shapes, everywhere:

    x: (batch, time, heads, headdim)    dt: (batch, time, heads), positive    A: (heads,), negative
    B, C: (batch, time, groups, state), where each group serves heads / groups heads
    state: (batch, heads, headdim, state), float32
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def recurrence(
    x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, state: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Outputs `(batch, time, heads, headdim)` and the last state, frame by frame: the reference of `scan`."""
    state = _zeros(x, B) if state is None else state
    outputs = []
    for t in range(x.shape[1]):
        y, state = step(x[:, t], dt[:, t], A, B[:, t], C[:, t], state)
        outputs.append(y)
    return torch.stack(outputs, dim=1), state


def step(x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The output `(batch, heads, headdim)` of one frame and the state after it; arguments without their time."""
    B, C = _per_head(B, x.shape[1]), _per_head(C, x.shape[1])
    decay = (dt * A).exp()
    state = state * decay[..., None, None] + (x * dt[..., None])[..., None] * B[..., None, :]
    return (state @ C[..., None])[..., 0], state


def scan(
    x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, chunk: int, state: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """What `recurrence` gives, in chunks of `chunk` frames, for any number of frames.

    The end is padded with `dt = 0`: such a frame neither decays the state nor adds to it.
    """
    batch, time, heads, _ = x.shape
    chunk = min(chunk, time)
    if padding := -time % chunk:
        x, B, C = (F.pad(part, (0, 0, 0, 0, 0, padding)) for part in (x, B, C))
        dt = F.pad(dt, (0, 0, 0, padding))
    weighted = _chunks(x * dt[..., None], chunk)
    Bs, Cs = _chunks(B, chunk), _chunks(C, chunk)
    decay = _chunks(dt * A, chunk).cumsum(
        -1
    )  # (batch, heads, chunks, chunk): log of what is left since the chunk began
    inside = (decay[..., :, None] - decay[..., None, :]).masked_fill(_future(chunk, x.device), -torch.inf).exp()
    scores = _heads_of(Cs @ Bs.mT, heads) * inside
    y = scores @ weighted
    to_end = (decay[..., -1:] - decay).exp()
    added = (weighted * to_end[..., None]).mT @ _heads_of(Bs, heads)  # (batch, heads, chunks, headdim, state)
    states = [_zeros(x, B) if state is None else state]
    for k, left in enumerate(decay[..., -1].exp().unbind(-1)):
        states.append(states[-1] * left[..., None, None] + added[:, :, k])
    if state is not None or len(states) > 2:  # the first chunk starts from nothing otherwise
        before = torch.stack(states[:-1], dim=2)
        y = y + (_heads_of(Cs, heads) @ before.mT) * decay.exp()[..., None]
    return y.permute(0, 2, 3, 1, 4).reshape(batch, time + padding, heads, -1)[:, :time], states[-1]


def _chunks(part: Tensor, chunk: int) -> Tensor:
    """(batch, time, heads, …) as (batch, heads, chunks, chunk, …)."""
    batch, time = part.shape[:2]
    return part.reshape(batch, time // chunk, chunk, *part.shape[2:]).movedim(3, 1)


def _future(size: int, device: torch.device) -> Tensor:
    return torch.ones(size, size, dtype=torch.bool, device=device).triu(1)


def _heads_of(part: Tensor, heads: int) -> Tensor:
    """(batch, groups, …) as (batch, heads, …), without a copy where one group serves all."""
    groups = part.shape[1]
    if groups == 1:
        return part
    return part.repeat_interleave(heads // groups, dim=1)


def _per_head(part: Tensor, heads: int) -> Tensor:
    return part.repeat_interleave(heads // part.shape[1], dim=1)


def _zeros(x: Tensor, B: Tensor) -> Tensor:
    return x.new_zeros(x.shape[0], x.shape[2], x.shape[3], B.shape[3], dtype=torch.float32)
