"""A controller's position, in the steps that the game has."""

from __future__ import annotations

from typing import NamedTuple

from projects.melee.layout import BUTTONS, STICK_STEPS, TRIGGER_STEPS

TILT, HARD = 22, 64
"""Steps of a stick that count as moved, and as moved all the way."""
FULL = STICK_STEPS
SHIELD_AT = 43
"""Steps of a trigger that raise a shield."""
A, B, JUMP, L, R = BUTTONS["A"], BUTTONS["B"], BUTTONS["X"] | BUTTONS["Y"], BUTTONS["L"], BUTTONS["R"]


class Pad(NamedTuple):
    """Sticks from -80 to 80, the trigger from 0 to 140, bits of `BUTTONS`."""

    x: int = 0
    y: int = 0
    c_x: int = 0
    c_y: int = 0
    shoulder: int = 0
    buttons: int = 0

    @property
    def shields(self) -> bool:
        return bool(self.buttons & (L | R)) or self.shoulder >= SHIELD_AT


REST = Pad()
SHIELD = Pad(shoulder=TRIGGER_STEPS, buttons=L)


class Pressed(NamedTuple):
    """A controller and the one of the frame before: what is held, and what is new."""

    now: Pad
    before: Pad

    def fresh(self, bits: int) -> bool:
        return bool(self.now.buttons & bits & ~self.before.buttons)

    @property
    def shield(self) -> bool:
        return self.now.shields and not self.before.shields

    @property
    def jump(self) -> bool:
        return self.fresh(JUMP) or (self.now.y >= HARD > self.before.y)

    @property
    def down(self) -> bool:
        """Whether the stick has just been thrown down."""
        return self.now.y <= -HARD < self.before.y

    @property
    def side(self) -> int:
        """-1 or 1 where the stick has just been thrown to a side, else 0."""
        if abs(self.now.x) >= HARD > self.before.x * (1 if self.now.x > 0 else -1):
            return 1 if self.now.x > 0 else -1
        return 0

    @property
    def c_stick(self) -> bool:
        now, before = self.now, self.before
        return max(abs(now.c_x), abs(now.c_y)) >= HARD > max(abs(before.c_x), abs(before.c_y))
