"""Who can fight in the demo, and with what: numbers much like the game's, with the game's own ids."""

from __future__ import annotations

from dataclasses import dataclass

NOTHING = 0
"""The id of no attack."""


@dataclass(frozen=True)
class Shot:
    """What a fighter shoots: an item type, its speed, how long it flies (frames), and how it hits."""

    type: int
    speed: float
    frames: int
    damage: float
    knockback: float


@dataclass(frozen=True)
class Body:
    """A character: internal id, and how it moves (units a frame)."""

    character: int
    gravity: float
    fall: float
    fast_fall: float
    walk: float
    dash: float
    run: float
    friction: float
    squat: int
    """Frames before a jump leaves the ground."""
    hop: float
    jump: float
    air_jump: float
    drift: float
    air_speed: float
    weight: float
    shot: Shot | None


FOX, CAPTAIN, SAMUS, MARTH, FALCO = 1, 2, 13, 18, 22
BODIES = (
    Body(FOX, 0.23, 2.8, 3.4, 1.6, 2.02, 2.2, 0.08, 3, 2.1, 3.68, 4.4, 0.08, 0.83, 75, Shot(54, 5.0, 40, 3, 0)),
    Body(CAPTAIN, 0.13, 2.9, 3.5, 0.85, 2.0, 2.3, 0.08, 4, 1.9, 3.1, 2.8, 0.06, 1.12, 104, None),
    Body(SAMUS, 0.066, 1.4, 2.3, 1.0, 1.86, 1.4, 0.06, 3, 1.4, 2.1, 2.0, 0.045, 0.89, 110, Shot(95, 2.2, 60, 8, 40)),
    Body(MARTH, 0.085, 2.2, 2.5, 1.6, 1.5, 1.8, 0.06, 4, 1.5, 2.4, 2.1, 0.06, 0.9, 87, None),
    Body(FALCO, 0.17, 3.1, 3.5, 1.4, 1.9, 1.5, 0.08, 5, 1.9, 4.1, 3.9, 0.07, 0.83, 80, Shot(55, 5.0, 45, 3, 12)),
)


@dataclass(frozen=True)
class Move:
    """An attack: from frame `first` to `last` of it a circle beside the fighter hits.

    action, attack: ids. frames: until it is over. reach, height: the circle's middle, forward and up. angle: degrees
    in which it sends, 90 is up. base, growth: of the knockback. landing: the action, and frames, of a landing in it.
    """

    action: int
    attack: int
    frames: int
    first: int
    last: int
    reach: float
    height: float
    radius: float
    damage: float
    angle: float
    base: float
    growth: float
    landing: tuple[int, int] = (0, 0)


JAB = Move(44, 2, 17, 2, 4, 8, 8, 5, 4, 70, 8, 60)
DASH_ATTACK = Move(50, 6, 38, 5, 12, 8, 6, 6, 7, 72, 35, 80)
FORWARD_TILT = Move(53, 7, 27, 5, 8, 12, 8, 5, 9, 40, 12, 95)
UP_TILT = Move(56, 8, 24, 5, 10, 4, 14, 8, 9, 95, 25, 110)
DOWN_TILT = Move(57, 9, 28, 6, 9, 12, 2, 5, 10, 75, 28, 100)
FORWARD_SMASH = Move(60, 10, 40, 12, 16, 14, 8, 7, 16, 42, 28, 98)
UP_SMASH = Move(63, 11, 42, 8, 14, 0, 18, 9, 15, 88, 32, 104)
DOWN_SMASH = Move(64, 12, 48, 6, 10, 0, 3, 12, 14, 30, 24, 80)
NEUTRAL_AIR = Move(65, 13, 40, 4, 20, 4, 8, 8, 10, 45, 12, 95, (70, 15))
FORWARD_AIR = Move(66, 14, 38, 6, 14, 11, 8, 6, 9, 40, 12, 90, (71, 18))
BACK_AIR = Move(67, 15, 38, 4, 9, -11, 8, 6, 13, 45, 14, 100, (72, 18))
UP_AIR = Move(68, 16, 34, 5, 10, 0, 16, 8, 11, 80, 16, 95, (73, 16))
DOWN_AIR = Move(69, 17, 46, 6, 22, 0, -3, 7, 12, 285, 16, 90, (74, 20))
AIRBORNE = (NEUTRAL_AIR, FORWARD_AIR, BACK_AIR, UP_AIR, DOWN_AIR)
