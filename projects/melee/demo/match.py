"""A game of the demo: two fighters, what they shoot, who hits whom, and every frame of it as the store has them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from projects.melee.demo.acting import SHOOTS_AT, act
from projects.melee.demo.bot import Bot
from projects.melee.demo.fighter import Act, Fighter
from projects.melee.demo.moves import BODIES, Move, Shot
from projects.melee.demo.pad import Pad
from projects.melee.game import Game, blank, with_items
from projects.melee.layout import MOST_ITEMS, PLAYER
from projects.melee.stages import STAGE

NEUTRAL_SPECIAL = 18
"""The id of what a shot hits with."""
CHEST, HALF_HEIGHT, WIDTH = 8.0, 7.0, 4.0
"""What of a fighter can be hit: a line upwards around its chest, this thick."""
SHOT_RADIUS = 2.0
GUARDED = (Act.SHIELD_START, Act.SHIELD, Act.SHIELD_STUN)
AFTER_FRAMES = 60
"""Frames that are kept after the last stock is lost."""
VERSION = "demo"


@dataclass
class Flying:
    """A shot in the air. shooter: 0 or 1."""

    shot: Shot
    shooter: int
    x: float
    y: float
    speed: float
    left: int


class Match:
    """Two fighters on a stage; `step` is a frame."""

    def __init__(self, stage: int, bodies: tuple[int, int]) -> None:
        """stage: its internal id. bodies: places in `BODIES`."""
        self.stage = stage
        self.fighters = [Fighter(BODIES[body], STAGE[stage], side) for body, side in zip(bodies, (-1, 1), strict=True)]
        self.flying: list[Flying] = []

    def step(self, pads: tuple[Pad, Pad]) -> None:
        """A frame, led by both controllers."""
        for fighter, pad in zip(self.fighters, pads, strict=True):
            act(fighter, pad)
        for shooter, fighter in enumerate(self.fighters):
            self._shoot(shooter, fighter)
        self._fly()
        first, second = self.fighters
        for fighter, other in ((first, second), (second, first)):
            if fighter.move is not None:
                _strike(fighter, other, fighter.move)
        for fighter, other in ((first, second), (second, first)):
            if not (other.stun or other.hitlag):
                fighter.combo = 0
            fighter.die()

    def _shoot(self, shooter: int, fighter: Fighter) -> None:
        shot = fighter.body.shot
        if shot is None or fighter.action not in (Act.SHOOT, Act.SHOOT_AIR) or fighter.hitlag:
            return
        if fighter.age == SHOOTS_AT and len(self.flying) < MOST_ITEMS:
            x, speed = fighter.x + 6 * fighter.facing, shot.speed * fighter.facing
            self.flying.append(Flying(shot, shooter, x, fighter.y + CHEST, speed, shot.frames))

    def _fly(self) -> None:
        for one in self.flying:
            one.x += one.speed
            one.left -= 1
            target, shooter = self.fighters[1 - one.shooter], self.fighters[one.shooter]
            if not target.is_gone and not target.hurtbox and _touches(target, one.x, one.y, SHOT_RADIUS):
                one.left = 0
                side = 1 if one.speed > 0 else -1
                _land_hit(shooter, target, NEUTRAL_SPECIAL, one.shot.damage, (one.shot.knockback, 0, 10), side)
        self.flying = [one for one in self.flying if one.left > 0]

    def is_over(self) -> bool:
        return any(fighter.stocks == 0 and fighter.age >= AFTER_FRAMES for fighter in self.fighters)


def _touches(target: Fighter, x: float, y: float, radius: float) -> bool:
    """Whether a circle reaches a fighter's body."""
    up = min(max(y, target.y + CHEST - HALF_HEIGHT), target.y + CHEST + HALF_HEIGHT)
    return (x - target.x) ** 2 + (y - up) ** 2 <= (radius + WIDTH) ** 2


def _strike(fighter: Fighter, target: Fighter, move: Move) -> None:
    """Hit with a move where it reaches the other, once."""
    if not move.first <= fighter.age <= move.last or fighter.has_hit or target.is_gone or target.hurtbox:
        return
    if _touches(target, fighter.x + move.reach * fighter.facing, fighter.y + move.height, move.radius):
        fighter.has_hit = True
        side = 1 if fighter.x <= target.x else -1
        _land_hit(fighter, target, move.attack, move.damage, (move.base, move.growth, move.angle), side)
        fighter.hitlag = target.hitlag


def _land_hit(
    fighter: Fighter, target: Fighter, attack: int, damage: float, force: tuple[float, float, float], side: int
) -> None:
    """Onto a shield, or onto the other itself. force: base and growth of the knockback, and its angle."""
    base, growth, angle = force
    if target.action in GUARDED:
        target.shield = max(0.0, target.shield - damage)
        target.enter(Act.SHIELD_STUN if target.shield else Act.BROKEN)
        target.own_x = side * (0.2 + 0.05 * damage)
    elif base or growth:
        fighter.combo = fighter.combo + 1 if target.stun else 1
        target.hurt(damage, base, growth, angle, side)
        fighter.last_attack = attack
    else:
        target.percent += damage
        return
    target.hitlag = int(damage / 3 + 3)


def _row(fighter: Fighter) -> tuple[float, ...]:
    """A fighter's frame, in the order of `PLAYER`."""
    pad = fighter.pad
    ground_x = 0.0 if fighter.airborne else fighter.own_x
    return (
        fighter.percent, fighter.x, fighter.y, fighter.shield, fighter.own_x, fighter.own_y, ground_x, fighter.push_x,
        fighter.push_y, fighter.age, fighter.hitlag, fighter.action, fighter.ground, pad.buttons, *pad[:5],
        fighter.jumps, fighter.body.character, fighter.l_cancel, fighter.hurtbox, fighter.last_attack, fighter.stocks,
        min(fighter.combo, 255), fighter.airborne, fighter.facing > 0,
    )  # fmt: skip


def play(seed: int, number: int, frames: int) -> Game:
    """Game `number` of a seed: at most `frames` frames, fewer where the last stock is lost before."""
    chance = random.Random(f"{seed} {number}")
    stages = list(STAGE)
    match = Match(stages[number % len(stages)], (chance.randrange(len(BODIES)), chance.randrange(len(BODIES))))
    bots = [Bot(chance, fighter, other) for fighter, other in (match.fighters, match.fighters[::-1])]
    rows: list[list[tuple[float, ...]]] = [[], []]
    counts: list[int] = []
    items: list[tuple[float, float, int, int, int]] = []
    while len(counts) < frames and not match.is_over():
        match.step((bots[0].pad(), bots[1].pad()))
        for place, fighter in enumerate(match.fighters):
            rows[place].append(_row(fighter))
        counts.append(len(match.flying))
        items += [(one.x, one.y, one.shot.type, 0, one.shooter) for one in match.flying]
    stored = blank(len(counts))
    for place in range(2):
        stored["players"][:, place] = np.array(rows[place], PLAYER)
    table = np.array(items, float).reshape(-1, 5)
    columns: dict[str, NDArray[Any]] = dict(zip(("x", "y", "type", "state", "owner"), table.T, strict=True))
    return Game(stored, with_items(stored, np.array(counts), columns), match.stage, None, (), VERSION)
