"""Rollouts: the model, persistence and constant velocity from the same starts, led by the true controllers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from projects.melee.frames import (
    ON_GROUND,
    SPEED_AIR_X,
    SPEED_ATTACK_X,
    SPEED_ATTACK_Y,
    SPEED_GROUND_X,
    SPEED_Y,
    Frames,
    X,
    Y,
    stack,
)  # fmt: skip
from projects.melee.rules import SURE, advance, with_hitlag
from projects.melee.world import Memory, WorldModel

ITEM_FRAMES = 30
"""Frames after which what flew about at the start is forgotten: nothing predicts it."""


class Stream:
    """Games that a model continues, one frame at a time, all of a batch together.

    Args:
        model: in eval mode.
        past: frames (batch, time) that it begins from; the newest is the first that it steps on.
        seed: of the hits, which are drawn as often as they are likely and freeze who is hit; without one only sure hits
            are hits, and what they freeze is the model's to say.
    """

    def __init__(self, model: WorldModel, past: Frames, seed: int | None = None) -> None:
        self._model, self._seed = model, seed
        self.frame = past.at(-1)
        """The newest frame: (batch)."""
        self._memory: Memory = model.begin(past.at(slice(None, -1)), past.control[:, 1:])
        self._steps = 0

    def step(self, control: Tensor) -> Frames:
        """The next frame, led by `control` (batch, 2, 13)."""
        said, self._memory = self._model.step(self.frame, control, self._memory)
        frame = advance(self.frame, said, control, self._model.first_age, self._least())
        self.frame = frame if self._seed is None else with_hitlag(self.frame, frame)
        self._steps += 1
        if self._steps == ITEM_FRAMES:
            gone = torch.zeros_like(self.frame.items), torch.zeros_like(self.frame.kinds)
            self.frame = replace(self.frame, items=gone[0], kinds=gone[1])
        return self.frame

    def _least(self) -> Tensor | float:
        """The logit from which on a hit is one: of the frame's number alone, so that a branch draws the same."""
        if self._seed is None:
            return SURE
        random = torch.Generator().manual_seed(self._seed + self._steps)
        return torch.rand(len(self.frame), 2, generator=random).logit().to(self.frame.state.device)

    @property
    def size(self) -> int:
        """Bytes that a stream takes beside the model."""
        kept = [*vars(self.frame).values()]
        for state in self._memory.states:
            kept += [state.conv, state.ssm]
        if self._memory.frames is not None:
            kept += vars(self._memory.frames).values()
        return sum(part.numel() * part.element_size() for part in kept)

    def branch(self) -> Stream:
        """A stream that continues from here by itself; nothing that a stream holds is ever changed in place."""
        other = object.__new__(Stream)
        other._model, other._seed, other._memory = self._model, self._seed, self._memory
        other.frame, other._steps = self.frame, self._steps
        return other


@torch.inference_mode()
def roll(model: WorldModel, past: Frames, controls: Tensor, seed: int | None = None) -> Frames:
    """The frames (batch, horizon) after `past` (batch, time), led by `controls` (batch, horizon, 2, 13).

    seed: of a `Stream`.
    """
    return stack(list(roll_steps(model, past, controls, seed)))


def roll_steps(model: WorldModel, past: Frames, controls: Tensor, seed: int | None = None) -> Iterator[Frames]:
    """The same, a frame (batch) at a time, so that who waits for it can stop in between."""
    stream = Stream(model, past, seed)
    for control in controls.unbind(1):
        yield stream.step(control)


def persistence(start: Frames, horizon: int) -> Frames:
    """The frame `start` (batch) again and again: (batch, horizon)."""
    return start.map(lambda part: part[:, None].expand(-1, horizon, *part.shape[1:]))


def constant_velocity(start: Frames, horizon: int) -> Frames:
    """`start` moved on by its own speed and its knockback: (batch, horizon). All else stays."""
    state = start.state
    own = torch.where(state[..., ON_GROUND] > 0.5, state[..., SPEED_GROUND_X], state[..., SPEED_AIR_X])
    steps = torch.arange(1, horizon + 1, device=state.device)[:, None]
    frames = persistence(start, horizon)
    moved = frames.state.clone()
    moved[..., X] += steps * (own + state[..., SPEED_ATTACK_X])[:, None]
    moved[..., Y] += steps * (state[..., SPEED_Y] + state[..., SPEED_ATTACK_Y])[:, None]
    return replace(frames, state=moved)
