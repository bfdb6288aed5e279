"""What a player decides, and what the body shows of it: the gestures of a whole session, frame by frame."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from projects.controls.demo.leads import PULSES
from projects.controls.demo.names import PITCH, POINT_X, POINT_Y, YAW
from projects.controls.layout import CONTROL_SIZE, CURSOR, LOOK

Floats = NDArray[np.float64]
MIDDLE = 0.5
"""Where the pointing hand rests, in screen fractions."""
_FLICKS = {2: (1.0, 0.6), 3: (0.6, 1.0, 0.4)}
"""The course of a gesture by the shortest lead of its control.

It is over when the control fires, so that the frame of firing looks like any other: only the frames before it tell.
"""


@dataclass(frozen=True)
class Hold:
    """From the frame `at` on the body shows exactly these controls of one channel (none: at rest)."""

    at: int
    controls: tuple[int, ...]


@dataclass(frozen=True)
class Pulse:
    """At the frame `at` the body begins the gesture of a control that fires once."""

    at: int
    control: int


@dataclass
class Script:
    """The gestures of one session of `frames` frames.

    turn: (frames, 2), the look that the head asks for. point: (frames, 2), where the right hand points in the screen.
    holds: by channel, in order of time; channels never share a control.
    """

    frames: int
    holds: dict[str, list[Hold]] = field(default_factory=lambda: defaultdict(list))
    pulses: list[Pulse] = field(default_factory=list)
    turn: Floats = field(init=False)
    point: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.turn = np.zeros((self.frames, len(LOOK)))
        self.point = np.full((self.frames, len(CURSOR)), MIDDLE)


def gestures(script: Script, rng: np.random.Generator) -> Floats:
    """How strongly the body shows each of the 28 controls: (frames, 28), 0 at rest.

    Every gesture is a little larger or smaller than the last; the cursor's are distances from the middle.
    """
    shown = np.zeros((script.frames, CONTROL_SIZE))
    for changes in script.holds.values():
        for change, following in zip(changes, [*changes[1:], None], strict=True):
            end = script.frames if following is None else following.at
            shown[change.at : end, change.controls] = rng.uniform(0.85, 1.15)
    shown[1:] = (shown[1:] + shown[:-1]) / 2  # a posture is reached in two frames
    for pulse in script.pulses:
        flick = np.array(_FLICKS[PULSES[pulse.control].first]) * rng.uniform(0.85, 1.15)
        room = shown[pulse.at : pulse.at + len(flick), pulse.control]
        room += flick[: len(room)]
    shown[:, [YAW, PITCH]] = script.turn
    shown[:, [POINT_X, POINT_Y]] = script.point - MIDDLE
    return shown
