"""Small networks and sequences for the tests of the agent's network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from projects.agent.dynamics import Actions, Dynamics

LATENT = (3, 4, 4)


def dynamics(**changes: Any) -> Dynamics:
    """Two layers within frames and two over time, whose outputs are not zero."""
    torch.manual_seed(0)
    model = Dynamics(
        LATENT,
        **{"width": 32, "layers": 4, "heads": 4, "time_every": 2, "registers": 2, "patch": 2, "context": 32, **changes},
    )
    nn.init.normal_(model.out.weight)
    nn.init.normal_(model.out.bias)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            nn.init.uniform_(parameter, 0.5, 1.5)
        elif "embedding" in name or "token" in name or name in ("positions", "registers"):
            nn.init.normal_(parameter, std=0.5)
    return model.eval()


def actions(batch: int, time: int, seed: int = 1) -> Actions:
    """Some unknown, and some of which the movement alone is."""
    random = torch.Generator().manual_seed(seed)
    return Actions(
        torch.randint(-1, 19, (batch, time), generator=random),
        torch.randint(0, 2, (batch, time, 8), generator=random).float(),
        torch.rand(batch, time, generator=random) < 0.8,
    )


def frames(model: Dynamics, batch: int, time: int, seed: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Latents, levels and sizes, every one possible."""
    random = torch.Generator().manual_seed(seed)
    steps = 2.0 ** torch.randint(0, model.finest.bit_length(), (batch, time), generator=random)
    tau = (torch.rand(batch, time, generator=random) * steps).floor() / steps
    return torch.randn(batch, time, *LATENT, generator=random), tau, 1 / steps
