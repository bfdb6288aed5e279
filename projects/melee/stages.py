"""Where the six stages have ground, edges and blast zones (DOMAIN 5.3), by internal id."""

from __future__ import annotations

from dataclasses import dataclass

from projects.melee.layout import STAGES


@dataclass(frozen=True)
class Platform:
    """Ground that one can jump through from below and drop through."""

    height: float
    left: float
    right: float


@dataclass(frozen=True)
class Stage:
    """All in game units; the floor is at height 0. edge: where its ground ends. hang: where one hangs on to it."""

    name: str
    left: float
    right: float
    top: float
    bottom: float
    hang: float
    edge: float
    platforms: tuple[Platform, ...] = ()


def _both(height: float, near: float, far: float) -> tuple[Platform, Platform]:
    """One on each side."""
    return Platform(height, -far, -near), Platform(height, near, far)


_STADIUM, _YOSHI, _DREAM_LAND, _FOUNTAIN, _BATTLEFIELD, _FINAL = 18, 6, 26, 8, 24, 25
STAGE: dict[int, Stage] = {
    _FOUNTAIN: Stage(
        STAGES[_FOUNTAIN], -198.75, 198.75, 202.5, -146.25, 66.255, 63.348,
        (Platform(42.7501, -14.25, 14.25), Platform(20.0, -49.5, -21.0), Platform(28.0, 21.0, 49.5)),
    ),
    _STADIUM: Stage(STAGES[_STADIUM], -230, 230, 180, -111, 90.658, 87.75, _both(25.0001, 25, 55)),
    _YOSHI: Stage(
        STAGES[_YOSHI], -175.7, 173.6, 168, -91, 58.908, 56,
        (Platform(42.0001, -15.75, 15.75), *_both(23.4501, 28, 59.5)),
    ),
    _DREAM_LAND: Stage(
        STAGES[_DREAM_LAND], -255, 255, 250, -123, 80.179, 77.271,
        (Platform(51.4254, -19.018, 19.018), Platform(30.1422, -61.393, -31.725), Platform(30.2426, 31.704, 63.075)),
    ),
    _BATTLEFIELD: Stage(
        STAGES[_BATTLEFIELD], -224, 224, 200, -108.8, 71.308, 68.4,
        (Platform(54.4001, -18.8, 18.8), *_both(27.2001, 20, 57.6)),
    ),
    _FINAL: Stage(STAGES[_FINAL], -246, 246, 188, -140, 88.474, 85.566),
}  # fmt: skip
"""Fountain of Dreams' side platforms move; here they are where they begin."""
MOVING = _FOUNTAIN
OTHER = Stage("another stage", -224, 224, 200, -109, 82.0, 80.0)
"""What is taken for every stage that is none of the six."""
