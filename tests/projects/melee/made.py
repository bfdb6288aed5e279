"""Frames and predictions made of random numbers in the ranges of the game."""

from __future__ import annotations

from collections.abc import Callable

import torch

from projects.melee.frames import CLASSES, INTS, SCALE, VOCABULARY, Frames
from projects.melee.rules import Prediction

LOW = (0, -90, -20, 0, -3, -3, -3, -3, -3, 0, 0, 0, 0, 0, 0, 0)
HIGH = (150, 90, 80, 60, 3, 3, 3, 3, 3, 60, 20, 4, 9, 1, 1, 1)
WHOLE = (9, 10, 11, 12, 13, 14, 15)


def frames(batch: int, time: int, seed: int = 0, *, first_action: int = 14) -> Frames:
    """Unrelated frames (batch, time); actions from `first_action` on, so that nobody is dead unless asked for."""
    random = torch.Generator().manual_seed(seed)
    low, high = torch.tensor(LOW).float(), torch.tensor(HIGH).float()
    state = low + (high - low) * torch.rand(batch, time, 2, 16, generator=random)
    state[..., WHOLE] = state[..., WHOLE].round()
    ints = torch.stack(
        [
            torch.randint(first_action if name == "action" else 0, VOCABULARY[name], (batch, time, 2), generator=random)
            for name in INTS
        ],
        dim=-1,
    )
    control = torch.rand(batch, time, 2, 13, generator=random)
    control[..., 5:] = control[..., 5:].round()
    stage = torch.randint(0, 33, (batch, 1), generator=random).expand(batch, time)
    nothing = torch.zeros(batch, time, 2, 0)
    return Frames(state * torch.tensor(SCALE), control, ints, stage, nothing, nothing.long())


def prediction(batch: int, time: int, seed: int = 0, *, size: float = 1.0, learned: bool = True) -> Prediction:
    """Random outputs (batch, time, 2, n) that need a gradient; `size` is their deviation. learned: age and hits too."""
    random = torch.Generator().manual_seed(seed)

    def draw(width: int) -> torch.Tensor:
        return (size * torch.randn(batch, time, 2, width, generator=random)).requires_grad_()

    classes = {name: draw(VOCABULARY[name]) for name in CLASSES}
    return Prediction(draw(4), draw(5), draw(3), draw(3), classes, *((draw(2), draw(1)) if learned else ()))


def called(name: str) -> Callable[[str], str]:
    """A message of `assert_close` that says which part it is about."""
    return lambda message: f"{name}: {message}"
