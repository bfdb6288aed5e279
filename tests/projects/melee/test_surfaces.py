"""What is below a fighter, beside a plain loop over the stages' ground."""

from __future__ import annotations

import pytest
import torch

from projects.melee.frames import FACING, ON_GROUND, SCALE, SPEED_AIR_X, SPEED_ATTACK_X, SPEED_GROUND_X, Frames, X, Y
from projects.melee.stages import STAGE
from projects.melee.surfaces import SUNK, Surfaces
from projects.melee.views import FighterView
from tests.projects.melee.made import frames

FOUNTAIN = 8


def by_hand(sequence: Frames, b: int, f: int) -> tuple[float, bool, float, float]:
    """Drop, whether there is ground, how far it reaches ahead and behind."""
    state, number = sequence.state[b, 0, f], int(sequence.stage[b, 0])
    if number not in STAGE:
        return 0.0, False, 0.0, 0.0
    value = [float(v) / scale for v, scale in zip(state, SCALE, strict=True)]
    stage = STAGE[number]
    ground = [(0.0, -stage.edge, stage.edge)]
    if number != FOUNTAIN:
        ground += [(p.height, p.left, p.right) for p in stage.platforms]
    x = value[X] + value[SPEED_ATTACK_X] + value[SPEED_GROUND_X if value[ON_GROUND] > 0.5 else SPEED_AIR_X]
    below = [part for part in ground if part[0] <= value[Y] + SUNK and part[1] <= x <= part[2]]
    if not below:
        return 0.0, False, 0.0, 0.0
    height, left, right = max(below)
    ends = abs(left - value[X]), abs(right - value[X])
    behind, ahead = ends if value[FACING] > 0.5 else ends[::-1]
    return value[Y] - height, True, ahead, behind


def test_the_ground_below_is_that_of_a_loop() -> None:
    sequence = frames(400, 1)
    sequence.stage.copy_(torch.tensor([*STAGE, 0, 3]).repeat(50)[:, None])
    below = Surfaces().below(sequence)
    seen = set()
    for b, f in ((b, f) for b in range(400) for f in (0, 1)):
        drop, exists, ahead, behind = by_hand(sequence, b, f)
        at = (b, 0, f)
        assert bool(below.exists[at]) == exists
        found = [float(part[at]) for part in (below.drop, below.ahead, below.behind)]
        assert found == pytest.approx([drop, ahead, behind], abs=1e-3)
        seen.add((exists, drop < 0))
    assert len(seen) == 3  # no ground, ground below, ground a little above


def test_the_numbers_of_a_place_are_bounded_and_know_the_edge() -> None:
    surfaces, sequence = Surfaces(), frames(60, 1)
    sequence.stage.fill_(24)
    numbers = surfaces(sequence, surfaces.below(sequence))
    assert numbers.shape == (60, 1, 2, Surfaces.width)
    assert numbers.abs().max() <= 1
    sequence.state[..., X] = torch.tensor([71.0, 72.0]) * SCALE[X]  # one hangs on at 71.308
    beyond = surfaces(sequence, surfaces.below(sequence))[..., -4]
    assert (beyond[..., 0] < 0).all()
    assert (beyond[..., 1] > 0).all()


def test_a_fighter_that_lands_is_on_the_ground() -> None:
    view, sequence = FighterView(16, kinematic=True, items=0, kinds=0), frames(40, 1)
    sequence.stage.fill_(24)
    moved = torch.randn(40, 1, 2, 2)
    height = {
        landing: sequence.state[..., Y] + view._landed(moved, torch.full((40, 1, 2, 1), landing), sequence)[..., 1]
        for landing in (-100.0, 100.0)
    }
    torch.testing.assert_close(height[-100.0], sequence.state[..., Y] + moved[..., 1])
    below = view.surfaces.below(sequence)
    known = torch.tensor([0.0, 27.2001, 54.4001]) * SCALE[Y]
    assert ((height[100.0][..., None] - known).abs().min(-1).values[below.exists] < 1e-5).all()
    torch.testing.assert_close(height[100.0][~below.exists], height[-100.0][~below.exists])
