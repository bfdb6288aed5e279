"""Frames of any rate in, frames at the model's rate out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from projects.controls.layout import COORDINATES
from projects.controls.masks import Floats

NEAR = 0.25
"""Share of a step: a frame that comes so near to a tick is that tick's own, as it is."""
DRIFT = 0.2
"""Share of such a distance by which later ticks move, so that a camera a percent off keeps one frame a tick."""


class Tick(NamedTuple):
    """frame: (260,). state: (46,). time: seconds."""

    frame: Floats
    state: Floats
    time: float


class Ticks:
    """Moments `1 / fps` apart, from the first frame on, and what is seen at each.

    A frame near a tick is taken as it is. A tick that no frame is near is made when the next frame has come:
    coordinates interpolated, flags and state of the nearer frame. Without `fps` every frame is a tick.
    """

    def __init__(self, fps: float | None) -> None:
        self._step = None if fps is None else 1 / fps
        self.reset()

    def reset(self) -> None:
        """Forget all frames: the next one is a tick."""
        self._last: Tick | None = None
        self._next = 0.0

    def push(self, frame: Floats, state: Floats, time: float) -> list[Tick]:
        """The ticks up to a new frame, of which none was given before; `time` is later than that of the last frame."""
        new, last = Tick(frame.copy(), state.copy(), time), self._last
        self._last = new
        if self._step is None:
            return [new]
        if last is None:
            self._next = time + self._step
            return [new]
        found = []
        while self._next < time - NEAR * self._step:
            found.append(_between(last, new, self._next))
            self._next += self._step
        early = self._next - time
        if early <= NEAR * self._step and early < (time - last.time) / 2:  # the frame to come may be nearer
            found.append(new)
            self._next += self._step - DRIFT * early
        return found


def _between(before: Tick, after: Tick, time: float) -> Tick:
    share = (time - before.time) / (after.time - before.time)
    near = before if share < 0.5 else after
    frame = near.frame.copy()
    moved = np.float32(share) * (after.frame[:COORDINATES] - before.frame[:COORDINATES])
    frame[:COORDINATES] = before.frame[:COORDINATES] + moved
    return Tick(frame, near.state, time)
