"""Sequences per second through one Mamba-2 layer, forward and backward, on one core: ours and transformers' torch path.

Both have the same weights and input and take turns; medians. Each side runs at the chunk length that is best for it.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch
from torch import Tensor

from benchmarks.measure import Measurement
from projects.melee.mamba import Mamba2

D_MODEL = 256
SHAPES = (("ssd", 16, 60), ("ssd_short", 64, 10), ("ssd_long", 4, 256))
"""Name of the row, sequences, frames of each. The first is the shape of the shipped K=60 config, and has the bar."""
CHUNKS = (16, 32, 64)
ROUNDS = 7
TOLERANCE = 1e-4


def measure() -> list[Measurement]:
    torch.set_num_threads(1)
    return [_shape(name, batch, frames) for name, batch, frames in SHAPES]


def _shape(name: str, batch: int, frames: int) -> Measurement:
    torch.manual_seed(0)
    x = torch.randn(batch, frames, D_MODEL, requires_grad=True)
    sides: dict[tuple[str, int], Any] = {}
    reference = Mamba2(D_MODEL)
    for chunk in CHUNKS:
        own = Mamba2(D_MODEL, chunk_size=chunk)
        own.load_state_dict(reference.state_dict())
        sides["ours", chunk] = own
        sides["theirs", chunk] = _transformers(chunk, reference)
    grad = torch.randn(batch, frames, D_MODEL)
    expected = reference(x)[0]
    times: dict[tuple[str, int], list[float]] = {key: [] for key in sides}
    for _ in range(ROUNDS):
        for key, layer in sides.items():
            began = time.thread_time()
            y = _output(layer, x)
            torch.autograd.backward(y, grad)
            times[key].append(time.thread_time() - began)
            torch.testing.assert_close(y, expected, atol=TOLERANCE, rtol=TOLERANCE)
    best = {key: statistics.median(found) for key, found in times.items()}
    ours, own_chunk = min((best["ours", chunk], chunk) for chunk in CHUNKS)
    theirs, their_chunk = min((best["theirs", chunk], chunk) for chunk in CHUNKS)
    return Measurement(
        name=name, ours=batch / ours, theirs=batch / theirs, unit="sequences/s", ratio=theirs / ours,
        reach="≥ 1.5" if name == "ssd" else "—",
        note=f"{batch} × {frames} frames, width {D_MODEL}; chunks of {own_chunk} (ours) and {their_chunk} frames",
    )  # fmt: skip


def _transformers(chunk: int, weights: Mamba2) -> Any:
    from transformers.models.mamba2.configuration_mamba2 import Mamba2Config
    from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer

    config = Mamba2Config(
        hidden_size=D_MODEL, state_size=64, head_dim=64, num_heads=2 * D_MODEL // 64, expand=2, n_groups=1,
        chunk_size=chunk, conv_kernel=4, use_bias=False, num_hidden_layers=1,
    )  # fmt: skip
    layer = Mamba2Mixer(config, layer_idx=0)
    layer.load_state_dict(weights.state_dict())
    return layer


def _output(layer: Any, x: Tensor) -> Tensor:
    output = layer(x)
    y: Tensor = output[0] if isinstance(output, tuple) else output
    return y
