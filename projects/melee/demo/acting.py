"""What a controller makes a fighter of the demo do, action by action, once a frame: on the ground here."""

from __future__ import annotations

from collections.abc import Callable

from projects.melee.demo import in_air, moves
from projects.melee.demo.fighter import MOST_SHIELD, SHIELD_GAIN, SHIELD_LOSS, TECH, Act, Fighter
from projects.melee.demo.moves import Move
from projects.melee.demo.pad import HARD, JUMP, TILT, A, B, Pad, Pressed
from projects.melee.layout import STICK_STEPS

ENTRY_FRAMES = 84
"""From the first frame, -123, to -39, from which fighters move."""
DEAD_FRAMES = 60
BROKEN_FRAMES = 150
SHOOTS_AT = 8


def act(fighter: Fighter, pad: Pad) -> None:
    """One frame of a fighter: its action, then its movement. Nothing happens in hitlag."""
    pressed = Pressed(pad, fighter.pad)
    fighter.pad = pad
    if pressed.shield:
        fighter.tech = TECH + 1
    if fighter.hitlag:
        fighter.hitlag -= 1
    if fighter.hitlag:
        return
    fighter.age += 1
    fighter.l_cancel = 0
    for name in ("tech", "safe", "no_hang"):
        setattr(fighter, name, max(0, getattr(fighter, name) - 1))
    if fighter.action not in (Act.SHIELD_START, Act.SHIELD, Act.SHIELD_STUN):
        fighter.shield = min(MOST_SHIELD, fighter.shield + SHIELD_GAIN)
    if fighter.move is not None:
        _attacking(fighter, pressed, fighter.move)
    elif fighter.stun:
        _stunned(fighter)
    else:
        ACTIONS.get(fighter.action, _waits(20, Act.STAND))(fighter, pressed)
    fighter.advance(pressed)


def _attacking(fighter: Fighter, pressed: Pressed, move: Move) -> None:
    if fighter.age >= move.frames:
        fighter.enter(Act.FALL if fighter.airborne else Act.STAND)
    if fighter.airborne:
        in_air.in_air(fighter, pressed.now)
    else:
        fighter.slow_down()


def _stunned(fighter: Fighter) -> None:
    fighter.stun -= 1
    if fighter.airborne:
        in_air.gravity(fighter)
    if not fighter.stun:
        flies = fighter.action in (Act.FLY, Act.FLY_UP, Act.FLY_ROLL)
        fighter.enter((Act.TUMBLING if flies else Act.FALL) if fighter.airborne else Act.STAND)


def _free(fighter: Fighter, pressed: Pressed) -> None:
    """On the ground, free to do anything."""
    now = pressed.now
    fighter.slow_down()
    if now.shields:
        fighter.enter(Act.SHIELD_START)
    elif move := _ground_attack(fighter, pressed):
        fighter.attack(move)
    elif pressed.fresh(B):
        in_air.special(fighter, pressed)
    elif pressed.jump:
        fighter.enter(Act.SQUAT)
    elif pressed.down and fighter.ground:
        fighter.leave_ground(Act.DROP, -0.5)
    elif now.y <= -HARD:
        fighter.keep(Act.CROUCH if fighter.action in (Act.CROUCH, Act.CROUCH_START) else Act.CROUCH_START)
    elif side := pressed.side:
        fighter.facing = side
        fighter.enter(Act.DASH)
    elif abs(now.x) >= TILT:
        _walk(fighter, now)
    elif fighter.action == Act.CROUCH:
        fighter.enter(Act.CROUCH_END)
    else:
        fighter.keep(Act.STAND)


def _walk(fighter: Fighter, pad: Pad) -> None:
    if pad.x * fighter.facing < 0:
        fighter.facing = -fighter.facing
        fighter.enter(Act.TURN)
        return
    fighter.keep(Act.WALK_FAST if abs(pad.x) >= HARD else Act.WALK)
    fighter.slow_down(pad.x / STICK_STEPS * fighter.body.walk, 0.1 + fighter.body.friction)


def _ground_attack(fighter: Fighter, pressed: Pressed) -> Move | None:
    now = pressed.now
    if pressed.c_stick:
        if abs(now.c_x) >= HARD:
            fighter.facing = 1 if now.c_x > 0 else -1
            return moves.FORWARD_SMASH
        return moves.UP_SMASH if now.c_y > 0 else moves.DOWN_SMASH
    if not pressed.fresh(A):
        return None
    if fighter.action in (Act.DASH, Act.RUN):
        return moves.DASH_ATTACK
    if abs(now.y) >= TILT and abs(now.y) >= abs(now.x):
        return moves.UP_TILT if now.y > 0 else moves.DOWN_TILT
    return moves.FORWARD_TILT if abs(now.x) >= TILT else moves.JAB


def _dash(fighter: Fighter, pressed: Pressed) -> None:
    if pressed.side == -fighter.facing or pressed.jump or pressed.now.shields or pressed.fresh(A | B):
        _free(fighter, pressed)
        return
    fighter.slow_down(fighter.facing * fighter.body.dash, 0.4)
    if fighter.age >= 12:
        fighter.enter(Act.RUN if pressed.now.x * fighter.facing >= HARD else Act.STAND)


def _run(fighter: Fighter, pressed: Pressed) -> None:
    if pressed.jump or pressed.now.shields or pressed.fresh(A | B):
        _free(fighter, pressed)
    elif pressed.now.x * fighter.facing < HARD:
        fighter.enter(Act.BRAKE)
        fighter.slow_down()
    else:
        fighter.slow_down(fighter.facing * fighter.body.run, 0.2)


def _squat(fighter: Fighter, pressed: Pressed) -> None:
    fighter.slow_down()
    if fighter.age >= fighter.body.squat:
        now, body = pressed.now, fighter.body
        high = now.buttons & JUMP or now.y >= HARD
        back = now.x * fighter.facing < -TILT
        fighter.leave_ground(Act.JUMP_BACK if back else Act.JUMP, body.jump if high else body.hop)
        fighter.own_x = 0.7 * fighter.own_x + now.x / STICK_STEPS * 0.6 * body.air_speed


def _shield(fighter: Fighter, pressed: Pressed) -> None:
    fighter.slow_down()
    fighter.shield -= SHIELD_LOSS
    if fighter.shield <= 0:
        fighter.shield = 0.0
        fighter.enter(Act.BROKEN)
    elif pressed.jump:
        fighter.enter(Act.SQUAT)
    elif side := pressed.side:
        fighter.enter(Act.ROLL if side == fighter.facing else Act.ROLL_BACK)
    elif pressed.down:
        fighter.enter(Act.SPOT_DODGE)
    elif not pressed.now.shields and fighter.age >= 8:
        fighter.enter(Act.SHIELD_END)
    elif fighter.action == Act.SHIELD_START and fighter.age >= 8:
        fighter.enter(Act.SHIELD)


def _roll(fighter: Fighter, pressed: Pressed) -> None:
    side = fighter.facing if fighter.action == Act.ROLL else -fighter.facing
    fighter.own_x = side * 1.7 if 4 <= fighter.age < 22 else 0.0
    if fighter.age >= 31:
        fighter.enter(Act.STAND)


def _dead(fighter: Fighter, pressed: Pressed) -> None:
    if fighter.age >= DEAD_FRAMES and fighter.stocks:
        fighter.come_back()


def _waits(frames: int, after: int, by: float | None = None) -> Callable[[Fighter, Pressed], None]:
    """An action that nothing ends before its time."""

    def wait(fighter: Fighter, pressed: Pressed) -> None:
        fighter.slow_down(0.0, by)
        if fighter.age >= frames:
            fighter.enter(after)

    return wait


def _landing(fighter: Fighter, pressed: Pressed) -> None:
    fighter.slow_down()
    lag = next(move.landing[1] for move in moves.AIRBORNE if move.landing[0] == fighter.action)
    if fighter.age == 1 and fighter.tech > TECH - 8:
        fighter.age = (lag + 1) // 2  # a shield pressed in time halves it
    if fighter.age >= lag:
        fighter.enter(Act.STAND)


ACTIONS: dict[int, Callable[[Fighter, Pressed], None]] = {
    **dict.fromkeys((Act.STAND, Act.WALK, Act.WALK_FAST, Act.CROUCH, Act.CROUCH_END), _free),
    **dict.fromkeys((Act.JUMP, Act.JUMP_BACK, Act.AIR_JUMP, Act.AIR_JUMP_BACK, Act.FALL, Act.TUMBLING), in_air.free),
    **dict.fromkeys((Act.DEAD_DOWN, Act.DEAD_LEFT, Act.DEAD_RIGHT, Act.DEAD_UP), _dead),
    **dict.fromkeys((move.landing[0] for move in moves.AIRBORNE), _landing),
    Act.ENTRY: _waits(ENTRY_FRAMES, Act.STAND), Act.HALO: in_air.halo, Act.HALO_WAIT: in_air.halo,
    Act.TURN: _waits(5, Act.STAND), Act.DASH: _dash, Act.RUN: _run, Act.BRAKE: _waits(12, Act.STAND),
    Act.SQUAT: _squat, Act.CROUCH_START: _waits(6, Act.CROUCH), Act.LAND: _waits(4, Act.STAND),
    Act.LAND_SPECIAL: _waits(12, Act.STAND), Act.SPECIAL_FALL: in_air.helpless, Act.DROP: in_air.drop,
    Act.SHIELD_START: _shield, Act.SHIELD: _shield, Act.SHIELD_END: _waits(15, Act.STAND),
    Act.SHIELD_STUN: _waits(10, Act.SHIELD), Act.BROKEN: _waits(BROKEN_FRAMES, Act.STAND),
    Act.ROLL: _roll, Act.ROLL_BACK: _roll, Act.SPOT_DODGE: _waits(22, Act.STAND), Act.AIR_DODGE: in_air.dodging,
    Act.MISSED: _waits(26, Act.LYING), Act.LYING: _waits(20, Act.GETUP), Act.GETUP: _waits(30, Act.STAND),
    Act.TECHED: _waits(26, Act.STAND), Act.CATCH: in_air.hanging, Act.HANG: in_air.hanging, Act.CLIMB: in_air.climb,
    Act.SHOOT: in_air.shooting, Act.SHOOT_AIR: in_air.shooting, Act.RISE_START: in_air.rise, Act.RISE: in_air.rise,
}  # fmt: skip
