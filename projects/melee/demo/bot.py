"""Who plays the demo's games: plans of a few frames, drawn by chance, that press a controller as people do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from projects.melee.demo.fighter import Act, Fighter
from projects.melee.demo.pad import FULL, REST, SHIELD, Pad
from projects.melee.layout import BUTTONS

Plan = Iterator[Pad]
FORWARD = 40
"""Steps of a stick that is tilted, not thrown."""
NEAR, FAR = 18.0, 60.0


class Kind(NamedTuple):
    """What a fighter is in, which calls for other plans."""

    gone: bool
    hangs: bool
    away: bool
    stunned: bool


class Bot:
    """Presses the controller of `me`."""

    def __init__(self, chance: random.Random, me: Fighter, other: Fighter) -> None:
        self._chance, self._me, self._other = chance, me, other
        self._plan: Plan = iter(())
        self._kind: Kind | None = None

    def pad(self) -> Pad:
        """The controller of the next frame."""
        me = self._me
        away = me.airborne and abs(me.x) > me.stage.edge
        kind = Kind(me.is_gone, me.action in (Act.CATCH, Act.HANG), away, me.stun > 0)
        if kind != self._kind:
            self._kind, self._plan = kind, self._choose(kind)
        pad = next(self._plan, None)
        if pad is None:
            self._plan = self._choose(kind)
            pad = next(self._plan, REST)
        return pad

    def _choose(self, kind: Kind) -> Plan:
        if self._me.action == Act.ENTRY:
            return self._rest(4)
        if kind.gone:
            return self._rest(self._between(10, 90))
        if kind.stunned:
            return self._endure()
        if kind.hangs:
            return self._climb()
        if kind.away:
            return self._return()
        return self._fight()

    def _between(self, least: int, most: int) -> int:
        return self._chance.randint(least, most)

    def _toward(self) -> int:
        return 1 if self._other.x > self._me.x else -1

    def _fight(self) -> Plan:
        distance = abs(self._other.x - self._me.x)
        above = self._other.y - self._me.y > 15
        draw = self._chance.random()
        if self._other.is_gone or draw < 0.08:
            return self._rest(self._between(5, 40))
        if distance > FAR and self._me.body.shot is not None and draw < 0.3:
            return self._tap(BUTTONS["B"], self._between(15, 40))
        if distance > NEAR:
            if draw < 0.3:
                return self._walk(self._toward() * self._between(30, FULL), self._between(5, 30))
            if draw < 0.62:
                return self._dash(self._toward(), self._between(8, 30))
            if draw < 0.82 or above:
                return self._jump(self._toward())
            return self._dash(-self._toward(), self._between(5, 14))
        if draw < 0.2:
            return self._shield()
        if draw < 0.28:
            return self._dash(-self._toward(), self._between(8, 20))
        if draw < 0.36:
            return self._drop()
        if draw < 0.5 or above:
            return self._jump(self._toward())
        return self._attack()

    def _rest(self, frames: int) -> Plan:
        for _ in range(frames):
            yield REST

    def _walk(self, x: int, frames: int) -> Plan:
        for _ in range(frames):
            yield Pad(x=x)

    def _dash(self, side: int, frames: int) -> Plan:
        yield Pad(x=side * 30)
        for _ in range(frames):
            if abs(self._me.x) > self._me.stage.edge - 12 and side * self._me.x > 0 and not self._me.airborne:
                return
            yield Pad(x=side * FULL)

    def _tap(self, button: int, after: int, x: int = 0, y: int = 0) -> Plan:
        for _ in range(self._between(2, 5)):
            yield Pad(x, y, buttons=button)
        for _ in range(after):
            yield Pad(x // 2, y // 2)

    def _attack(self) -> Plan:
        side, draw = self._toward(), self._chance.random()
        if draw < 0.25:
            c_x, c_y = self._chance.choice(((side * FULL, 0), (0, FULL), (0, -FULL)))
            for _ in range(self._between(2, 6)):
                yield Pad(c_x=c_x, c_y=c_y)
            yield from self._rest(self._between(8, 30))
        else:
            x, y = self._chance.choice(((0, 0), (side * FORWARD, 0), (0, FORWARD), (0, -FORWARD)))
            yield from self._tap(BUTTONS["A"], self._between(8, 24), x, y)

    def _jump(self, side: int) -> Plan:
        """A jump, an attack or a shot in it, a second jump, and down."""
        x = side * self._between(0, FULL)
        for _ in range(self._chance.choice((2, 8))):
            yield Pad(x, buttons=BUTTONS["X"])
        draw = self._chance.random()
        yield from self._walk(x, self._between(3, 16))
        if draw < 0.6:
            up = 1 if self._other.y > self._me.y + 5 else -1
            aim_x, aim_y = self._chance.choice(((0, 0), (side * FULL, 0), (0, up * FULL)))
            yield from self._tap(BUTTONS["A"], 1, aim_x, aim_y)
        elif draw < 0.75:
            yield from self._tap(BUTTONS["B"], 4)
        elif draw < 0.85:
            yield from self._tap(BUTTONS["Y"], 6, x)
        while self._me.own_y > 0 and self._me.airborne:
            yield Pad(x)
        yield from self._fall(x)

    def _fall(self, x: int) -> Plan:
        fast = self._chance.random() < 0.5
        cancels = self._chance.random() < 0.7
        for _ in range(90):
            if not self._me.airborne:
                return
            lands = cancels and self._me.own_y < 0 and self._me.y + 5 * self._me.own_y < 0
            y = -FULL if fast and self._me.own_y < 0 else 0
            yield Pad(x // 2, y, shoulder=140 if lands else 0, buttons=BUTTONS["L"] if lands and self._me.move else 0)

    def _shield(self) -> Plan:
        frames, draw = self._between(6, 40), self._chance.random()
        for _ in range(frames):
            yield SHIELD
        if draw < 0.35:
            side = self._chance.choice((-1, 1))
            yield from (SHIELD._replace(x=side * FULL) for _ in range(4))
        elif draw < 0.55:
            yield from (SHIELD._replace(y=-FULL) for _ in range(3))
        yield from self._rest(self._between(4, 20))

    def _drop(self) -> Plan:
        """Down: through a platform, or a crouch."""
        for _ in range(self._between(3, 20)):
            yield Pad(y=-FULL)
        yield REST

    def _endure(self) -> Plan:
        """While hit: toward the middle, and now and then the shield, to break the fall."""
        home = -1 if self._me.x > 0 else 1
        while True:
            if self._chance.random() < 0.05:
                yield from (Pad(home * FULL, shoulder=140, buttons=BUTTONS["R"]) for _ in range(4))
            yield Pad(home * FULL, self._between(-20, 60))

    def _climb(self) -> Plan:
        yield from self._rest(self._between(8, 40))
        if self._chance.random() < 0.6:
            yield from self._walk(self._me.facing * FULL, 6)
        else:
            yield from (Pad(self._me.facing * FULL, buttons=BUTTONS["Y"]) for _ in range(5))
            yield from self._walk(self._me.facing * FULL, 10)

    def _return(self) -> Plan:
        """Back to the stage: drift, jump, and the jump of last resort."""
        home = -1 if self._me.x > 0 else 1
        while True:
            low = self._me.own_y <= 0 and self._me.y < self._between(-40, 10)
            if low and self._me.jumps:
                yield from (Pad(home * FULL, buttons=BUTTONS["X"]) for _ in range(4))
                yield from self._walk(home * FULL, 8)
            elif low and self._me.y < -15 and self._me.action in (Act.FALL, Act.AIR_JUMP, Act.TUMBLING, Act.JUMP):
                yield from (Pad(0, FULL, buttons=BUTTONS["B"]) for _ in range(3))
                yield from (Pad(home * 60, FULL) for _ in range(24))
            else:
                yield Pad(home * FULL)
