"""How a frame is drawn: the stage with its blast zones and platforms, both fighters, and what flies about."""

from __future__ import annotations

import math

from engines.contract.scenes import Box, Image, Kind, Line, Point, Text, View
from projects.melee.actions import category
from projects.melee.frames import (
    ACTION,
    FACING,
    LAST_GONE,
    ON_GROUND,
    PERCENT,
    SCALE,
    SHIELD,
    Frames,
    X,
    Y,
)  # fmt: skip
from projects.melee.stages import OTHER, STAGE, Stage

Item = Line | Box | Text | Image
TALL = 15.0
"""Height of a fighter, in game units."""
MARGIN = 25.0
"""What is in sight around a fighter at least."""
REACH = 1.25
"""Of the floor, what is always in sight."""
KINDS: tuple[Kind, Kind] = ("first", "second")


def view(frame: Frames, ghost: Frames | None) -> View:
    """The part of the stage in which the fighters of `frame` (1) are; those of `ghost` are drawn faintly."""
    ground = STAGE.get(int(frame.stage[0]), OTHER)
    items: list[Item] = [*_floor(ground), *_zone(ground)]
    if ghost is not None:
        for place in (0, 1):
            items += _fighter(ghost, place, "faint")
    items += _flying(frame)
    for place in (0, 1):
        items += [*_fighter(frame, place, KINDS[place]), *_shield(frame, place), _label(frame, place)]
    low, high = _camera(ground, frame)
    return View(low, high, items, title=ground.name)


def _camera(ground: Stage, frame: Frames) -> tuple[Point, Point]:
    """Floor and platforms, and as far as the fighters are, not beyond the blast zone."""
    xs, ys = frame.value(X)[0].tolist(), frame.value(Y)[0].tolist()
    low = max(ground.left - 5, min(-REACH * ground.edge, *(x - MARGIN for x in xs)))
    high = min(ground.right + 5, max(REACH * ground.edge, *(x + MARGIN for x in xs)))
    under = max(ground.bottom - 5, min(-MARGIN, *(y - MARGIN / 2 for y in ys)))
    over = min(ground.top + 5, max(80.0, *(y + TALL + MARGIN / 2 for y in ys)))
    return (low, under), (high, over)


def _floor(ground: Stage) -> list[Item]:
    edge = ground.edge
    items: list[Item] = [
        Line([(-edge, 0), (edge, 0), (edge * 0.8, -12), (-edge * 0.8, -12), (-edge, 0)], "plain"),
        Line([(-edge, -1.5), (edge, -1.5)], "quiet"),
    ]
    items += [Line([(one.left, one.height), (one.right, one.height)], "plain") for one in ground.platforms]
    return items


def _zone(ground: Stage) -> list[Item]:
    return [Box(ground.left, ground.bottom, ground.right - ground.left, ground.top - ground.bottom, "bad")]


def _fighter(frame: Frames, place: int, kind: Kind) -> list[Item]:
    """A figure of lines that looks where it faces; one that attacks reaches out, one that is hurt leans back."""
    action = int(frame.ints[0, place, ACTION])
    x, y = float(frame.value(X)[0, place]), float(frame.value(Y)[0, place])
    side = 1.0 if frame.state[0, place, FACING] > 0.5 else -1.0
    if action <= LAST_GONE and action != 12 and action != 13:
        return [Text(x, y, "✖", kind)]
    what = category(action)
    lean = {"damage": -3.0, "movement": 2.0}.get(what, 0.0) * side
    head, hip, neck = (x + lean, y + TALL - 2), (x, y + TALL * 0.4), (x + lean, y + TALL - 4)
    spread = 3.0 if frame.state[0, place, ON_GROUND] > 0.5 else 4.5
    feet = y if frame.state[0, place, ON_GROUND] > 0.5 else y + 2
    reach = 11.0 if "attack" in what or what in ("grab", "special") else 4.5
    hand = (x + lean + reach * side, y + TALL * (0.62 if reach > 5 else 0.45))
    return [
        Line([(x - spread, feet), hip, (x + spread, feet)], kind),
        Line([hip, neck], kind),
        Line([neck, hand], kind),
        Line(_circle(head, 2.5, 8), kind),
        Line([(head[0] + 2.5 * side, head[1]), (head[0] + 4.5 * side, head[1])], kind),
    ]


def _shield(frame: Frames, place: int) -> list[Item]:
    action, strength = int(frame.ints[0, place, ACTION]), float(frame.value(SHIELD)[0, place])
    if not 178 <= action <= 182:
        return []
    x, y = float(frame.value(X)[0, place]), float(frame.value(Y)[0, place]) + TALL / 2
    return [Line(_circle((x, y), 4 + 8 * strength / 60, 16), "accent")]


def _label(frame: Frames, place: int) -> Text:
    x, y = float(frame.value(X)[0, place]), float(frame.value(Y)[0, place])
    return Text(x, y + TALL + 6, f"P{place + 1} {float(frame.value(PERCENT)[0, place]):.0f} %", KINDS[place])


def _flying(frame: Frames) -> list[Item]:
    """Projectiles as the first fighter has them near, then the second; the same one may be both."""
    count = frame.kinds.shape[-1] // 2
    places = set()
    for place in (0, 1):
        x, y = float(frame.value(X)[0, place]), float(frame.value(Y)[0, place])
        for dx, dy, exists in frame.items[0, place, : 3 * count].reshape(count, 3).tolist():
            if exists > 0.5:
                places.add((round(x + dx / SCALE[X], 1), round(y + dy / SCALE[Y], 1)))
    return [Box(x - 1.5, y - 1.5, 3, 3, "accent", filled=True) for x, y in sorted(places)]


def _circle(middle: Point, radius: float, corners: int) -> list[Point]:
    turns = [2 * math.pi * k / corners for k in range(corners + 1)]
    return [(middle[0] + radius * math.cos(turn), middle[1] + radius * math.sin(turn)) for turn in turns]
