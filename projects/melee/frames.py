"""Frames as the models see them: both fighters' encoded state as tensors, with named columns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

STATE = (
    "percent", "x", "y", "shield", "speed_air_x", "speed_y", "speed_ground_x", "speed_attack_x", "speed_attack_y",
    "state_age", "hitlag", "stocks", "combo", "facing", "invulnerable", "on_ground",
)  # fmt: skip
"""Columns of `Frames.state`."""
SCALE = (0.01, 0.05, 0.05, 0.01, 0.05, 0.05, 0.05, 0.05, 0.05, 0.01, 0.1, 0.25, 0.1, 1.0, 1.0, 1.0)
"""What game units are multiplied by, a column of `Frames.state` each."""
CONTROL = ("main_x", "main_y", "c_x", "c_y", "shoulder", "A", "B", "X", "Y", "Z", "L", "R", "D_UP")
"""Columns of `Frames.control`, all from 0 to 1; a stick at rest is .5."""
INTS = ("action", "jumps", "character", "l_cancel", "hurtbox", "ground", "last_attack")
"""Columns of `Frames.ints`."""
(
    PERCENT, X, Y, SHIELD, SPEED_AIR_X, SPEED_Y, SPEED_GROUND_X, SPEED_ATTACK_X, SPEED_ATTACK_Y,
    AGE, HITLAG, STOCKS, COMBO, FACING, INVULNERABLE, ON_GROUND,
) = range(len(STATE))  # fmt: skip
ACTION, JUMPS, CHARACTER, L_CANCEL, HURTBOX, GROUND, LAST_ATTACK = range(len(INTS))
STICKS = slice(0, 4)
BUTTONS = slice(5, 13)
CONTINUOUS, VELOCITY, DYNAMICS, BINARY = slice(0, 4), slice(4, 9), slice(10, 13), slice(13, 16)
"""Blocks of the state that are predicted together: Δ, Δ, absolute, bits."""
CLASSES = ("action", "jumps", "l_cancel", "hurtbox", "ground", "last_attack")
"""Class heads, in the order of the int targets."""
CLASS_COLUMNS = tuple(INTS.index(name) for name in CLASSES)
VOCABULARY = {
    "action": 400, "jumps": 8, "character": 33, "l_cancel": 3, "hurtbox": 3, "ground": 32, "last_attack": 64,
    "stage": 33, "state_age": 150,
}  # fmt: skip


@functools.cache
def units(device: torch.device) -> Tensor:
    """`SCALE` on a device: (16,). Made once, since each transfer would wait for a GPU; it trains wherever made."""
    with torch.inference_mode(False):
        return torch.tensor(SCALE, device=device)


LAST_GONE = 13
"""Actions up to this are dead (0 to 11) or respawning (12, 13): such a fighter is where no rule of motion puts it."""


@dataclass(frozen=True)
class Frames:
    """Some frames of some games; every tensor begins with the same dimensions, such as (batch, time).

    state: (…, 2, 16) float32, scaled. control: (…, 2, 13), the controllers that led into the frame. ints: (…, 2, 7)
    int64. stage: (…) int64. items: (…, 2, n) float32, what is near a fighter; n is 0 without projectiles. kinds:
    (…, 2, 2 · count) int64, their types and states.
    """

    state: Tensor
    control: Tensor
    ints: Tensor
    stage: Tensor
    items: Tensor
    kinds: Tensor

    def map(self, change: Callable[[Tensor], Tensor]) -> Frames:
        """`change` applied to every tensor; it may touch the leading dimensions alone."""
        return Frames(**{field.name: change(getattr(self, field.name)) for field in fields(self)})

    def at(self, index: int | slice) -> Frames:
        """Some frames along the time, or one (without its dimension)."""
        return self.map(lambda part: part[:, index])

    def rows(self, every: int, first: int = 0) -> Frames:
        """Every `every`-th row of the batch, from `first` on."""
        return self.map(lambda part: part[first::every])

    def __len__(self) -> int:
        return len(self.stage)

    @property
    def frames(self) -> int:
        """Length of the time."""
        return self.stage.shape[1]

    def value(self, column: int) -> Tensor:
        """One column of the state in game units: (…, 2)."""
        return self.state[..., column] / SCALE[column]

    @property
    def gone(self) -> Tensor:
        """Whether a fighter is dead or respawning: (…, 2) bool."""
        return self.ints[..., ACTION] <= LAST_GONE


def join(parts: Sequence[Frames], dim: int = 1) -> Frames:
    """Frames one after the other along an existing dimension."""
    return Frames(**{f.name: torch.cat([getattr(p, f.name) for p in parts], dim) for f in fields(Frames)})


def stack(parts: Sequence[Frames], dim: int = 1) -> Frames:
    """Frames one after the other along a new dimension."""
    return Frames(**{f.name: torch.stack([getattr(p, f.name) for p in parts], dim) for f in fields(Frames)})
