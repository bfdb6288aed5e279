"""What any player can do: change a posture, make a gesture, turn the head, point. Always decided before it happens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from projects.controls.demo.leads import LONGEST
from projects.controls.demo.names import FIRST_SLOT, INVENTORY, LEFT_CLICK, RIGHT_CLICK, SHIFT
from projects.controls.demo.script import MIDDLE, Hold, Pulse, Script
from projects.controls.layout import HOTBAR

FPS = 20
APART = LONGEST + 4
"""Frames between two gestures of one kind: the first has fired, and its movement is over, before the next begins."""
REST = 2 * LONGEST + 2
"""Frames without a new gesture at the end of a mood: all is released before the next, which may open a screen."""


class Player:
    """Decides the gestures of `script`, all randomness from `rng`; works on the frames from `begin` to `end`."""

    def __init__(self, script: Script, rng: np.random.Generator) -> None:
        self.script, self.rng = script, rng
        self.begin, self.end = 0, script.frames
        self.slot = 0

    def moments(self, every: float) -> Iterator[int]:
        """Frames at random, `every` seconds apart on average and never less than `APART` frames."""
        spread = max(every * FPS - APART, 0.0)
        at = self.begin + int(self.rng.exponential(spread))
        while at < self.end - REST:
            yield at
            at += APART + int(self.rng.exponential(spread))

    def hold(self, channel: str, every: float, choices: dict[tuple[int, ...], float]) -> None:
        """Hold something else on `channel` every so many seconds, by the weights in `choices`; rest at the end."""
        options, weights = list(choices), np.array(list(choices.values()))
        now: tuple[int, ...] = ()
        for at in self.moments(every):
            chances = weights * [option != now for option in options]
            now = options[self.rng.choice(len(options), p=chances / chances.sum())]
            self.script.holds[channel].append(Hold(at, now))
        self.script.holds[channel].append(Hold(self.end - REST + LONGEST, ()))

    def press(self, control: int, every: float) -> None:
        """Press `control` every so many seconds."""
        self.script.pulses += [Pulse(at, control) for at in self.moments(every)]

    def change_slot(self, every: float) -> None:
        """Choose another hotbar slot every so many seconds."""
        for at in self.moments(every):
            self.slot = (self.slot + int(self.rng.integers(1, len(HOTBAR)))) % len(HOTBAR)
            self.script.pulses.append(Pulse(at, FIRST_SLOT + self.slot))

    def turn(self, every: float, frames: tuple[int, int], yaw: float, pitch: float, *, flick: bool = False) -> None:
        """Turn the head every so many seconds, up to `yaw` and `pitch` of full speed: in a swing, or a sudden flick."""
        free = self.begin
        for at in self.moments(every):
            length = int(self.rng.integers(*frames, endpoint=True))
            if at < free or at + length > self.end - LONGEST:
                continue
            course = np.ones(length) if flick else np.sin(np.pi * (np.arange(length) + 0.5) / length) ** 2
            speed = self.rng.uniform(0.3, 1.0, 2) * self.rng.choice([-1, 1], 2) * (yaw, pitch)
            self.script.turn[at : at + length] = course[:, None] * speed
            free = at + length + 1

    def use_inventory(self) -> None:
        """Open the inventory, point at slots and click, some with shift held, and close it again."""
        close = self.end - REST
        self.script.pulses += [Pulse(self.begin, INVENTORY), Pulse(close, INVENTORY)]
        here = np.full(2, MIDDLE)
        at = self.begin + APART
        shift = False
        # a whole visit of a slot, its click and a change of shift must be over before the screen closes
        while at + 32 < close:
            there = self.rng.uniform((0.25, 0.2), (0.75, 0.85))
            at += self._point(at, here, there)
            here = there
            if shift or self.rng.random() < 0.4:
                shift = not shift
                self.script.holds["shift"].append(Hold(at, (SHIFT,) if shift else ()))
            at += int(self.rng.integers(1, 4))
            control = LEFT_CLICK if self.rng.random() < 0.6 else RIGHT_CLICK
            self.script.pulses.append(Pulse(at, control))
            at += int(self.rng.integers(5, 12))
        if shift:
            self.script.holds["shift"].append(Hold(close - LONGEST - 1, ()))
        self._point(close + LONGEST, here, np.full(2, MIDDLE))

    def _point(self, at: int, here: np.ndarray, there: np.ndarray) -> int:
        """Move the pointing hand in one smooth reach, stay there, and give the frames it took."""
        length = int(self.rng.integers(5, 11))
        share = np.arange(1, length + 1) / length
        smooth = share**3 * (10 - 15 * share + 6 * share**2)
        reach = here + smooth[:, None] * (there - here)
        room = self.script.point[at:]
        room[:length] = reach[: len(room)]
        room[length:] = there
        return length
