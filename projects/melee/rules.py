"""From a prediction to the next frame: what the rollout, self-forcing and play all do."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from projects.melee.frames import (
    ACTION,
    AGE,
    BINARY,
    CLASS_COLUMNS,
    CLASSES,
    COMBO,
    CONTINUOUS,
    DYNAMICS,
    FACING,
    GROUND,
    HITLAG,
    JUMPS,
    PERCENT,
    SCALE,
    SHIELD,
    STOCKS,
    VELOCITY,
    VOCABULARY,
    Frames,
    X,
    Y,
)  # fmt: skip
from projects.melee.stages import OTHER, STAGE

LIMITS = {
    PERCENT: (0, 999), X: (-300, 300), Y: (-200, 300), SHIELD: (0, 60), HITLAG: (0, 50), STOCKS: (0, 4), COMBO: (0, 50)
}  # fmt: skip
"""Least and most of a column, in game units. A dead fighter may lie outside its stage's blast zones."""
WHOLE = (HITLAG, STOCKS, COMBO)
RESPAWN = 12
"""The action of a fighter that comes back: its percent begins again."""
RESPAWN_HEIGHT = 60.0
FALLING = 29
"""The action of a fighter that falls, not hurt."""
LEAST_HIT = 0.5
"""Percent: a smaller predicted change is none, of models that do not learn hits."""
SURE = 4.0
"""Logit of a hit that is not drawn, by validation: what is learned of a thousand hits is too sure of them."""
FREEZING = 3.0
"""Percent of a hit from which on both fighters stand still; less is mostly a shot, whose owner does not."""
HURT, CAPTURED = slice(75, 92), slice(223, 233)
"""Actions of who is hit, and of who is held."""


@dataclass(frozen=True)
class Prediction:
    """What a model says of the next frame, for both fighters, scaled: every tensor is (…, 2, n).

    continuous: Δ of percent, x, y, shield; of models that learn hits, percent's is what a hit would add. velocity: Δ of
    the five speeds. dynamics: hitlag, stocks, combo. binary: logits of facing, invulnerable, on_ground. classes: logits
    by the names of `CLASSES`; what has no head is carried forward. Of models that learn them, age: rate in frames and
    logit of a reset, hit: logit of being hurt.
    """

    continuous: Tensor
    velocity: Tensor
    dynamics: Tensor
    binary: Tensor
    classes: Mapping[str, Tensor]
    age: Tensor | None = None
    hit: Tensor | None = None

    def map(self, change: Callable[[Tensor], Tensor]) -> Prediction:
        """`change` applied to every tensor; it may touch the leading dimensions alone."""
        return Prediction(
            change(self.continuous),
            change(self.velocity),
            change(self.dynamics),
            change(self.binary),
            {name: change(logits) for name, logits in self.classes.items()},
            None if self.age is None else change(self.age),
            None if self.hit is None else change(self.hit),
        )

    def at(self, index: int | slice) -> Prediction:
        """Some frames along the time, or one."""
        return self.map(lambda part: part[:, index])

    def rows(self, every: int, first: int = 0) -> Prediction:
        """Every `every`-th row of the batch, from `first` on."""
        return self.map(lambda part: part[first::every])


def advance(last: Frames, said: Prediction, control: Tensor, first_age: Tensor, least: Tensor | float = SURE) -> Frames:
    """The frame after `last` (…): no gradient passes.

    control: (…, 2, 13), what the players do. first_age: (400,) the age that an action begins with. least: the logit
    that a hit is above, (…, 2) or a number: that of a random number draws hits as often as they are likely.
    """
    state = last.state.clone()
    change = said.continuous.detach().float()
    hit = None if said.hit is None else said.hit[..., 0].detach() > least
    if hit is None:
        added = change[..., PERCENT].masked_fill(change[..., PERCENT].abs() < LEAST_HIT * SCALE[PERCENT], 0)
    else:
        added = change[..., PERCENT].clamp(min=0) * hit
    state[..., CONTINUOUS] += torch.cat([added[..., None], change[..., PERCENT + 1 :]], dim=-1)
    state[..., VELOCITY] += said.velocity.detach().float()
    state[..., DYNAMICS] = said.dynamics.detach().float()
    state[..., BINARY] = (said.binary.detach() > 0).float()
    ints = last.ints.clone()
    for name, column in zip(CLASSES, CLASS_COLUMNS, strict=True):
        if name in said.classes:
            ints[..., column] = said.classes[name].detach().argmax(-1)
    if hit is not None:
        _hurt(state, ints, hit, said.classes["action"])
    for column, (least, most) in LIMITS.items():
        value = state[..., column] / SCALE[column]
        state[..., column] = (value.round() if column in WHOLE else value).clamp(least, most) * SCALE[column]
    state[..., STOCKS] = torch.minimum(state[..., STOCKS], last.state[..., STOCKS])
    state[..., AGE] = next_age(last, state, ints, said.age, first_age) * SCALE[AGE]
    return Frames(state, control, ints, last.stage, _left_behind(last, state), last.kinds)


def _hurt(state: Tensor, ints: Tensor, hit: Tensor, actions: Tensor) -> None:
    """Give who is `hit: (…, 2)` the likeliest action of the hurt, and who comes back no percent, in place."""
    action = ints[..., ACTION]
    is_hurt = (action >= HURT.start) & (action < HURT.stop) | (action >= CAPTURED.start) & (action < CAPTURED.stop)
    likeliest = actions[..., HURT].detach().argmax(-1) + HURT.start
    ints[..., ACTION] = torch.where(hit & ~is_hurt, likeliest, action)
    state[..., PERCENT].masked_fill_(ints[..., ACTION] == RESPAWN, 0)


def _left_behind(last: Frames, state: Tensor) -> Tensor:
    """What flew about stays where it was in the world, since nothing predicts it: (…, 2, 3 · count + 1)."""
    count = last.kinds.shape[-1] // 2
    if not count:
        return last.items
    near = last.items[..., :-1].reshape(*last.items.shape[:-1], count, 3)
    there, exists = near[..., :2], near[..., 2:]
    moved = (state - last.state)[..., None, X : Y + 1]
    return torch.cat([torch.cat([there - moved * exists, exists], dim=-1).flatten(-2), last.items[..., -1:]], dim=-1)


def next_age(last: Frames, state: Tensor, ints: Tensor, said: Tensor | None, first_age: Tensor) -> Tensor:
    """The age of the action in frames: (…, 2). Without a learned one it grows by 1, not in hitlag."""
    action = ints[..., ACTION]
    begins = action != last.ints[..., ACTION]
    if said is None:
        rate = (state[..., HITLAG] <= 0).float()
    else:
        rate = said[..., 0].detach().float()
        begins = begins | (said[..., 1].detach() > 0)
    return torch.where(begins, first_age[action], last.value(AGE) + rate)


def with_hitlag(last: Frames, frame: Frames) -> Frames:
    """The frame (…) after `last` with both fighters in hitlag where one was hit, and who is in hitlag held still.

    A hit of d percent gives floor(d / 3 + 3) frames, as in most real hits that give any (.81). In hitlag only the
    hitlag itself changes: in real games positions stay on .985 of the frames, all else on .999.
    """
    added = frame.value(PERCENT) - last.value(PERCENT)
    strongest = torch.maximum(added, added.flip(-1))
    hit = strongest >= FREEZING
    held = (last.value(HITLAG) > 1.5) & ~hit & (added <= 0)
    state = torch.where(held[..., None], last.state, frame.state)
    left = torch.where(held, last.value(HITLAG) - 1, frame.value(HITLAG))
    least = torch.where(hit, (strongest / 3 + 3).floor(), 0).clamp(max=LIMITS[HITLAG][1])
    state[..., HITLAG] = torch.maximum(left, least) * SCALE[HITLAG]
    ints = torch.where(held[..., None], last.ints, frame.ints)
    return replace(frame, state=state, ints=ints, items=torch.where(held[..., None], last.items, frame.items))


def violations(last: Frames, frame: Frames) -> dict[str, Tensor]:
    """Where a frame breaks a rule of the game: (…, 2) bool each. Real games do some of it too."""
    percent, before = frame.value(PERCENT), last.value(PERCENT)
    return {
        "percent below 0": percent < 0,
        "stocks rise": frame.value(STOCKS) > last.value(STOCKS) + 0.5,
        "hitlag below 0": frame.value(HITLAG) < 0,
        "hurt without hitlag": (percent > before + 0.5) & (frame.value(HITLAG) <= 0),
        "alive beyond the blast zone": outside(frame),
    }


@functools.cache
def _blast_zones(device: torch.device) -> Tensor:
    """Left, right, top and bottom of each stage: (stages, 4)."""
    stages = (STAGE.get(number, OTHER) for number in range(VOCABULARY["stage"]))
    return torch.tensor([(one.left, one.right, one.top, one.bottom) for one in stages], device=device)


def outside(frame: Frames) -> Tensor:
    """Which fighters of `frame` (…) are alive by their action and yet beyond the blast zone: (…, 2) bool."""
    left, right, top, bottom = _blast_zones(frame.stage.device)[frame.stage][..., None, :].unbind(-1)
    x, y = frame.value(X), frame.value(Y)
    return ((x < left) | (x > right) | (y > top) | (y < bottom)) & ~frame.gone


def respawned(frame: Frames, lost: Tensor) -> Frames:
    """`frame` (batch) with the fighters `lost: (batch, 2)` back above the stage, one stock poorer and unhurt.

    What a world that is played in does where its model lets a fighter fall for ever: deaths are rare in its data.
    """
    fresh = torch.zeros_like(frame.state)
    fresh[..., Y] = RESPAWN_HEIGHT * SCALE[Y]
    fresh[..., SHIELD] = 60 * SCALE[SHIELD]
    fresh[..., STOCKS] = (frame.value(STOCKS) - 1).clamp(min=0) * SCALE[STOCKS]
    fresh[..., FACING] = frame.state[..., FACING]
    ints = frame.ints.clone()
    ints[..., ACTION], ints[..., JUMPS], ints[..., GROUND] = FALLING, 1, 0
    state = torch.where(lost[..., None], fresh, frame.state)
    return replace(frame, state=state, ints=torch.where(lost[..., None], ints, frame.ints))
