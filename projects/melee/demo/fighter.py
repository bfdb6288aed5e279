"""A fighter of the demo: where it is, how it moves, falls, lands, is hit and dies.

What its controller makes it do is in `acting` and `in_air`. Away from hits, landings and teleports a position is the
last one plus the own speed and the knockback, as in the game.
"""

from __future__ import annotations

import math
from enum import IntEnum

from projects.melee.demo.moves import NOTHING, Body, Move
from projects.melee.demo.pad import HARD, REST, TILT, Pad, Pressed
from projects.melee.layout import STICK_STEPS
from projects.melee.stages import Stage

Surface = tuple[int, float, float, float]
"""Ground: its id, height, left and right end."""
DECAY = 0.051
"""What knockback loses each frame, along its direction."""
LAUNCH = 0.03
STUN = 0.4
TUMBLE = 80.0
"""Knockback from which a fighter flies until it is on the ground."""
STEADY = 32.0
"""Knockback below which one that stands keeps standing."""
MOST_SHIELD, SHIELD_GAIN, SHIELD_LOSS = 60.0, 0.07, 0.28
HALO, SAFE_AFTER = 135.0, 120
HANG_DEPTH, HANG_REACH = 18.0, 8.0
TECH = 20
"""Frames after a press of the shield in which a fall is broken."""
STOCKS = 4


class Act(IntEnum):
    """Action states of the game that a demo fighter can be in, beside its attacks."""

    DEAD_DOWN, DEAD_LEFT, DEAD_RIGHT, DEAD_UP, HALO, HALO_WAIT = 0, 1, 2, 3, 12, 13
    STAND, WALK, WALK_FAST, TURN, DASH, RUN, BRAKE, SQUAT = 14, 15, 17, 18, 20, 21, 23, 24
    JUMP, JUMP_BACK, AIR_JUMP, AIR_JUMP_BACK, FALL, SPECIAL_FALL, TUMBLING = 25, 26, 27, 28, 29, 35, 38
    CROUCH_START, CROUCH, CROUCH_END, LAND, LAND_SPECIAL = 39, 40, 41, 42, 43
    HURT, HURT_AIR, FLY, FLY_UP, FLY_ROLL = 78, 84, 88, 90, 91
    SHIELD_START, SHIELD, SHIELD_END, SHIELD_STUN = 178, 179, 180, 181
    MISSED, LYING, GETUP, TECHED, BROKEN = 183, 184, 186, 199, 211
    ROLL, ROLL_BACK, SPOT_DODGE, AIR_DODGE, DROP = 233, 234, 235, 236, 244
    CATCH, HANG, CLIMB, ENTRY = 252, 253, 255, 322
    SHOOT, SHOOT_AIR, RISE_START, RISE = 343, 347, 354, 356


SAFE: dict[int, tuple[int, int]] = {
    Act.SPOT_DODGE: (2, 15), Act.ROLL: (4, 19), Act.ROLL_BACK: (4, 19), Act.AIR_DODGE: (4, 29), Act.TECHED: (0, 20),
    Act.CATCH: (0, 30), Act.HANG: (0, 30), Act.CLIMB: (0, 28), Act.GETUP: (0, 22),
}  # fmt: skip
"""Ages of an action in which nothing hits."""


class Fighter:
    """One of the two. `own_x`, `own_y`: its own speed. `push_x`, `push_y`: knockback."""

    def __init__(self, body: Body, stage: Stage, side: int) -> None:
        """side: where it begins, -1 or 1."""
        self.body, self.stage, self.side = body, stage, side
        self.x, self.y = side * 40.0, 0.0
        self.own_x = self.own_y = self.push_x = self.push_y = 0.0
        self.percent, self.shield, self.hitlag = 0.0, MOST_SHIELD, 0
        self.action: int = Act.ENTRY
        self.age, self.stun, self.safe, self.tech, self.no_hang = 0, 0, 0, 0, 0
        self.stocks, self.combo, self.jumps, self.last_attack, self.l_cancel = STOCKS, 0, 2, NOTHING, 0
        self.airborne, self.ground, self.facing = False, 0, -side
        self.move: Move | None = None
        self.has_hit = self.fast = False
        self.aim = (0.0, 1.0)
        self.pad: Pad = REST
        floor = (0, 0.0, -stage.edge, stage.edge)
        platforms = enumerate(stage.platforms, start=1)
        self.surfaces: list[Surface] = [floor, *((k, p.height, p.left, p.right) for k, p in platforms)]

    def enter(self, action: int) -> None:
        self.action, self.age, self.move = action, 0, None

    def keep(self, action: int) -> None:
        """Enter an action unless it is the present one."""
        if self.action != action:
            self.enter(action)

    def attack(self, move: Move) -> None:
        self.enter(move.action)
        self.move, self.has_hit = move, False

    @property
    def is_gone(self) -> bool:
        return self.action <= Act.HALO_WAIT

    @property
    def hurtbox(self) -> int:
        """0: can be hit. 1: invulnerable after a respawn. 2: intangible while it dodges."""
        first, last = SAFE.get(self.action, (1, 0))
        if first <= self.age <= last:
            return 2
        return 1 if self.safe or self.action in (Act.HALO, Act.HALO_WAIT) else 0

    def leave_ground(self, action: int, speed_y: float = 0.0) -> None:
        self.enter(action)
        self.airborne, self.own_y, self.fast = True, speed_y, False
        self.jumps = min(self.jumps, 1)

    def slow_down(self, target: float = 0.0, by: float | None = None) -> None:
        """Bring the own speed sideways nearer to `target`, on the ground or in the air."""
        step = self.body.friction if by is None else by
        gap = target - self.own_x
        self.own_x += max(-step, min(step, gap))

    def drift(self, pad: Pad) -> None:
        """In the air the stick pulls sideways."""
        if abs(pad.x) >= TILT:
            self.slow_down(pad.x / STICK_STEPS * self.body.air_speed, self.body.drift)
        else:
            self.slow_down(0.0, 0.02)

    def advance(self, pressed: Pressed) -> None:
        """Move by the own speed and the knockback, as far as ground and walls let it."""
        if self.action <= Act.DEAD_UP:
            return
        self._decay()
        if self.airborne:
            self._fly(pressed)
        else:
            self._slide()

    def _decay(self) -> None:
        speed = math.hypot(self.push_x, self.push_y)
        loss = DECAY if self.airborne else self.body.friction
        kept = max(0.0, speed - loss) / speed if speed else 0.0
        self.push_x *= kept
        self.push_y *= kept

    def _slide(self) -> None:
        _, _, left, right = self.surfaces[self.ground]
        if self.action in (Act.ROLL, Act.ROLL_BACK):  # a roll stops at the edge
            self.own_x = max(left, min(right, self.x + self.own_x)) - self.x
        self.x += self.own_x + self.push_x
        if not left <= self.x <= right:
            hurt = self.stun > 0
            self.leave_ground(Act.HURT_AIR if hurt else Act.FALL)

    def _fly(self, pressed: Pressed) -> None:
        before_x, before_y = self.x, self.y
        new_x, new_y = self.x + self.own_x + self.push_x, self.y + self.own_y + self.push_y
        edge = self.stage.edge
        if self.action != Act.CLIMB and new_y < 0 and before_y < 0 and abs(new_x) < edge <= abs(before_x):
            new_x = math.copysign(edge, before_x)  # the wall below the floor
            self.own_x, self.push_x = new_x - before_x, 0.0
        self.x, self.y = new_x, new_y
        if new_y <= before_y and self.action not in (Act.HALO, Act.HALO_WAIT, Act.CATCH, Act.HANG):
            drops = self.action == Act.DROP or (pressed.now.y <= -HARD and not self.stun)
            for surface in self.surfaces[: 1 if drops else None]:
                number, height, left, right = surface
                if before_y >= height >= new_y and left <= new_x <= right:
                    self._land(number, height)
                    return
            self._grab_edge()

    def _land(self, ground: int, height: float) -> None:
        move, action = self.move, self.action
        self.airborne, self.ground, self.y, self.jumps = False, ground, height, 2
        self.own_y = self.push_y = 0.0
        if self.stun or action == Act.TUMBLING:
            self._fall_down()
        elif move is not None:
            self.l_cancel = 1 if self.tech > TECH - 7 else 2
            self.enter(move.landing[0])
        else:
            self.enter(Act.LAND_SPECIAL if action in (Act.SPECIAL_FALL, Act.AIR_DODGE, Act.RISE) else Act.LAND)

    def _fall_down(self) -> None:
        flew = self.action not in (Act.HURT_AIR, Act.HURT)
        self.stun = 0
        if flew:
            self.enter(Act.TECHED if self.tech else Act.MISSED)
            self.own_x = self.push_x = 0.0
        else:
            self.enter(Act.LAND)

    def _grab_edge(self) -> None:
        side = 1 if self.x > 0 else -1
        outside = 0 <= abs(self.x) - self.stage.edge <= HANG_REACH and -HANG_DEPTH - 10 <= self.y <= -4
        busy = self.stun or self.move or self.no_hang or self.pad.y <= -HARD or self.action == Act.CLIMB
        if outside and not busy and self.facing == -side:
            self.enter(Act.CATCH)
            self.x, self.y, self.jumps = side * self.stage.hang, -HANG_DEPTH, 1
            self.own_x = self.own_y = self.push_x = self.push_y = 0.0

    def hurt(self, damage: float, base: float, growth: float, angle: float, side: int) -> float:
        """Take a hit that sends to `side` (1: right). Returns the knockback."""
        self.percent = min(999.0, self.percent + damage)
        fall = ((self.percent / 10 + self.percent * damage / 20) * 200 / (self.body.weight + 100) * 1.4 + 18) * growth
        knockback = fall / 100 + base
        self.own_x = self.own_y = 0.0
        radians = math.radians(angle)
        speed = knockback * LAUNCH
        self.push_x, self.push_y = math.cos(radians) * speed * side, math.sin(radians) * speed
        flies = self.airborne or (knockback >= STEADY and self.push_y > 0)
        if not flies:
            self.push_y = 0.0
        elif not self.airborne:
            self.jumps, self.airborne = min(self.jumps, 1), True
        self.enter(_hurt_action(knockback, angle, flies))
        self.stun, self.fast, self.facing = int(knockback * STUN), False, -side
        return knockback

    def die(self) -> bool:
        """Whether it has just left the stage's zone: then it is dead, and has a stock less."""
        stage = self.stage
        out = {
            Act.DEAD_LEFT: self.x < stage.left, Act.DEAD_RIGHT: self.x > stage.right,
            Act.DEAD_DOWN: self.y < stage.bottom, Act.DEAD_UP: self.y > stage.top and self.push_y > 0,
        }  # fmt: skip
        where = next((action for action, is_out in out.items() if is_out), None)
        if where is None or self.is_gone:
            return False
        self.enter(where)
        self.stocks -= 1
        self.own_x = self.own_y = self.push_x = self.push_y = 0.0
        self.stun = self.hitlag = self.combo = self.last_attack = 0
        return True

    def come_back(self) -> None:
        """Onto the halo, unhurt."""
        self.enter(Act.HALO)
        self.x, self.y, self.facing = self.side * 20.0, HALO, -self.side
        self.percent, self.shield, self.jumps, self.airborne = 0.0, MOST_SHIELD, 1, True


def _hurt_action(knockback: float, angle: float, flies: bool) -> int:
    if knockback >= TUMBLE and flies:
        if knockback > 1.5 * TUMBLE:
            return Act.FLY_ROLL
        return Act.FLY_UP if 70 <= angle <= 110 else Act.FLY
    level = 0 if knockback < STEADY else 1 if knockback < TUMBLE / 1.5 else 2
    return (Act.HURT_AIR if flies else Act.HURT) + level
