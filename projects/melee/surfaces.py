"""What a fighter has below its feet, from what is known of the six stages: where it lands, and how far edges are."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from projects.melee.frames import (
    FACING,
    ON_GROUND,
    SPEED_AIR_X,
    SPEED_ATTACK_X,
    SPEED_ATTACK_Y,
    SPEED_GROUND_X,
    SPEED_Y,
    VOCABULARY,
    Frames,
    X,
    Y,
)  # fmt: skip
from projects.melee.stages import MOVING, STAGE

NEVER = 1e4
"""Height, in game units, of ground that is not there: nobody is above it."""
SUNK = 9.0
"""Game units that a fighter's place may be below the ground it lands on in the next frame: its feet are higher then."""
HEIGHTS = (0.25, 1.0, 4.0, 16.0, 64.0)
LENGTHS = (2.0, 16.0)
"""Distances in game units, of which tanh makes numbers."""


@dataclass(frozen=True)
class Below:
    """The highest ground below each fighter: all (…, 2), game units.

    drop: how far it is down to it, 0 where there is none. exists: whether there is any. ahead, behind: how far it
    reaches before the fighter and in its back.
    """

    drop: Tensor
    exists: Tensor
    ahead: Tensor
    behind: Tensor


class Surfaces(nn.Module):
    """Floors and platforms by stage; a stage that is not known has none."""

    width = 2 + 2 * len(HEIGHTS) + 4 * len(LENGTHS)
    ground: Tensor
    hang: Tensor

    def __init__(self) -> None:
        super().__init__()
        most = 1 + max(len(stage.platforms) for stage in STAGE.values())
        ground = torch.full((VOCABULARY["stage"], most, 3), NEVER)
        hang = torch.zeros(VOCABULARY["stage"])
        for number, stage in STAGE.items():
            hang[number] = stage.hang
            still = [] if number == MOVING else stage.platforms
            rows = [(0.0, -stage.edge, stage.edge), *((p.height, p.left, p.right) for p in still)]
            ground[number, : len(rows)] = torch.tensor(rows)
        self.register_buffer("ground", ground, persistent=False)
        self.register_buffer("hang", hang, persistent=False)

    def below(self, frames: Frames) -> Below:
        """What is below each fighter where its speed takes it."""
        speed = torch.where(frames.state[..., ON_GROUND] > 0.5, frames.value(SPEED_GROUND_X), frames.value(SPEED_AIR_X))
        x, y = frames.value(X) + speed + frames.value(SPEED_ATTACK_X), frames.value(Y)
        height, left, right = self.ground[frames.stage][..., None, :, :].unbind(-1)  # (…, 1, grounds)
        over = (height <= y[..., None] + SUNK) & (x[..., None] >= left) & (x[..., None] <= right)
        highest, which = height.masked_fill(~over, -NEVER).max(dim=-1)
        exists = over.any(dim=-1)
        ends = (side.expand(over.shape).gather(-1, which[..., None])[..., 0] for side in (left, right))
        to_left, to_right = (torch.where(exists, (end - frames.value(X)).abs(), 0) for end in ends)
        facing_right = frames.state[..., FACING] > 0.5
        return Below(
            torch.where(exists, y - highest, 0), exists,
            torch.where(facing_right, to_right, to_left), torch.where(facing_right, to_left, to_right),
        )  # fmt: skip

    def forward(self, frames: Frames, below: Below) -> Tensor:
        """Numbers from -1 to 1: (…, 2, width)."""
        x, y, exists = frames.value(X), frames.value(Y), below.exists.float()
        falls = frames.value(SPEED_Y) + frames.value(SPEED_ATTACK_Y)
        known = self.hang[frames.stage][..., None]
        beyond = torch.where(known > 0, x.abs() - known, 0)
        outward = (2 * frames.state[..., FACING] - 1) * x.sign()
        parts = [exists[..., None], outward[..., None]]
        parts += [_squashed(value * exists, HEIGHTS) for value in (below.drop, below.drop + falls)]
        parts += [_squashed(value, LENGTHS) for value in (below.ahead, below.behind, beyond, y)]
        return torch.cat(parts, dim=-1)


def _squashed(value: Tensor, scales: tuple[float, ...]) -> Tensor:
    return torch.stack([(value / scale).tanh() for scale in scales], dim=-1)
