"""Tiny models for tests."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from projects.sim.network import SimNetwork, build

SETTINGS: dict[str, Any] = {
    "llm": "tiny-llama", "llm_layers": None, "llm_dtype": "fp32", "prompt": "", "random_weights": False,
    "vision": "grid",
    "cached": True, "dv": 10, "d": None, "frames": 8, "tokens": 4, "confidence": False, "inputs": "both",
}  # fmt: skip


def network(**changes: Any) -> SimNetwork:
    """A tiny model with the statistics of random data."""
    torch.manual_seed(0)
    made = build(SETTINGS | changes)
    random = torch.Generator().manual_seed(1)
    width = made.feature_mean.shape[0]
    made.set_statistics(
        torch.randn(50, 8, generator=random), torch.randn(50, width, generator=random) if width else None
    )
    return made


def batch(count: int = 6, seed: int = 2, *, frames: int = 8, dv: int = 10) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(seed)
    made = {
        "telemetry": torch.randn(count, 8, generator=random),
        "weight": torch.ones(count),
        "risk_id": torch.randint(0, 4, (count,), generator=random),
        "reason_id": torch.randint(0, 4, (count,), generator=random),
        "action_id": torch.randint(0, 6, (count,), generator=random),
    }
    if dv:
        made["vis_feats"] = torch.randn(count, frames, dv, generator=random)
    return made
