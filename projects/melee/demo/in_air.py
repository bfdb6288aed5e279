"""What a controller makes a fighter of the demo do in the air and at an edge, action by action."""

from __future__ import annotations

import math

from projects.melee.demo import moves
from projects.melee.demo.fighter import HALO, SAFE_AFTER, Act, Fighter
from projects.melee.demo.moves import Move
from projects.melee.demo.pad import HARD, REST, TILT, A, B, Pad, Pressed
from projects.melee.layout import STICK_STEPS

HALO_FRAMES, HALO_REST, HALO_WAIT = 60, 60.0, 120


def gravity(fighter: Fighter) -> None:
    most = fighter.body.fast_fall if fighter.fast else fighter.body.fall
    fighter.own_y = max(fighter.own_y - fighter.body.gravity, -most)


def in_air(fighter: Fighter, pad: Pad) -> None:
    fighter.drift(pad)
    gravity(fighter)


def free(fighter: Fighter, pressed: Pressed) -> None:
    """In the air, free to do anything."""
    now = pressed.now
    if pressed.shield:
        _dodge(fighter, now)
        return
    if move := _air_attack(fighter, pressed):
        fighter.attack(move)
    elif pressed.fresh(B):
        special(fighter, pressed)
    elif pressed.jump and fighter.jumps:
        back = now.x * fighter.facing < -TILT
        fighter.enter(Act.AIR_JUMP_BACK if back else Act.AIR_JUMP)
        fighter.jumps -= 1
        fighter.own_y, fighter.fast = fighter.body.air_jump + fighter.body.gravity, False
        fighter.own_x = now.x / STICK_STEPS * fighter.body.air_speed
    elif pressed.down and fighter.own_y < 0:
        fighter.fast, fighter.own_y = True, -fighter.body.fast_fall
    elif fighter.age >= 40 and fighter.action != Act.TUMBLING:
        fighter.keep(Act.FALL)
    in_air(fighter, now)


def _air_attack(fighter: Fighter, pressed: Pressed) -> Move | None:
    now = pressed.now
    if not (pressed.c_stick or pressed.fresh(A)):
        return None
    x, y = (now.c_x, now.c_y) if pressed.c_stick else (now.x, now.y)
    if max(abs(x), abs(y)) < TILT:
        return moves.NEUTRAL_AIR
    if abs(y) >= abs(x):
        return moves.UP_AIR if y > 0 else moves.DOWN_AIR
    return moves.FORWARD_AIR if x * fighter.facing > 0 else moves.BACK_AIR


def _dodge(fighter: Fighter, pad: Pad) -> None:
    fighter.enter(Act.AIR_DODGE)
    far = math.hypot(pad.x, pad.y)
    speed = 3.1 / far if far >= TILT else 0.0
    fighter.own_x, fighter.own_y = pad.x * speed, pad.y * speed


def dodging(fighter: Fighter, pressed: Pressed) -> None:
    if fighter.age < 30:
        fighter.own_x *= 0.9
        fighter.own_y *= 0.9
    else:
        in_air(fighter, pressed.now)
    if fighter.age >= 49:
        fighter.enter(Act.SPECIAL_FALL)


def special(fighter: Fighter, pressed: Pressed) -> None:
    if pressed.now.y >= HARD and fighter.airborne:
        fighter.enter(Act.RISE_START)
    elif fighter.body.shot is not None:
        fighter.enter(Act.SHOOT_AIR if fighter.airborne else Act.SHOOT)


def shooting(fighter: Fighter, pressed: Pressed) -> None:
    if fighter.airborne:
        in_air(fighter, pressed.now)
    else:
        fighter.slow_down()
    if fighter.age >= 28:
        fighter.enter(Act.FALL if fighter.airborne else Act.STAND)


def rise(fighter: Fighter, pressed: Pressed) -> None:
    """The jump that brings a fighter back: it waits, then flies where the stick points."""
    if fighter.action == Act.RISE_START:
        fighter.own_x, fighter.own_y = 0.9 * fighter.own_x, -0.2
        if fighter.age >= 20:
            far = math.hypot(pressed.now.x, pressed.now.y)
            fighter.aim = (pressed.now.x / far, pressed.now.y / far) if far >= TILT else (0.0, 1.0)
            fighter.enter(Act.RISE)
    else:
        fighter.own_x, fighter.own_y = fighter.aim[0] * 3.2, fighter.aim[1] * 3.2
        if fighter.age >= 24:
            fighter.enter(Act.SPECIAL_FALL)


def drop(fighter: Fighter, pressed: Pressed) -> None:
    """Through a platform."""
    in_air(fighter, pressed.now)
    if fighter.age >= 10:
        fighter.enter(Act.FALL)


def helpless(fighter: Fighter, pressed: Pressed) -> None:
    in_air(fighter, pressed.now)


def hanging(fighter: Fighter, pressed: Pressed) -> None:
    if fighter.action == Act.CATCH:
        if fighter.age >= 8:
            fighter.enter(Act.HANG)
        return
    if pressed.jump:
        fighter.no_hang = 30
        fighter.leave_ground(Act.JUMP, fighter.body.jump)
    elif pressed.now.x * fighter.facing >= HARD or pressed.fresh(A):
        fighter.enter(Act.CLIMB)
    elif pressed.down or pressed.now.x * fighter.facing <= -HARD or fighter.age >= 300:
        fighter.no_hang = 30
        fighter.enter(Act.FALL)


def climb(fighter: Fighter, pressed: Pressed) -> None:
    """Up beside the edge, then over it, and down onto the floor."""
    if fighter.age <= 15:
        fighter.own_x, fighter.own_y = 0.0, -fighter.y / (16 - fighter.age) + 0.01
    else:
        fighter.own_x, fighter.own_y = fighter.facing * 0.9, 0.0 if fighter.age < 30 else -0.5


def halo(fighter: Fighter, pressed: Pressed) -> None:
    if fighter.action == Act.HALO:
        fighter.own_y = -(HALO - HALO_REST) / HALO_FRAMES
        if fighter.age >= HALO_FRAMES:
            fighter.enter(Act.HALO_WAIT)
    else:
        fighter.own_y = 0.0
        if fighter.age >= HALO_WAIT or pressed.now != REST:
            fighter.safe = SAFE_AFTER
            fighter.enter(Act.FALL)
