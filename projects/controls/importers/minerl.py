"""MineRL logs: a line has `action.keyboard` {name: 0 or 1}, `action.mouse` with `camera` [pitch, yaw] in degrees and
`buttons` [pressed button, …], and `timestamp` in milliseconds. They say nothing of screens, cursor and hotbar slot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from projects.controls.importers.lines import bad_line, json_lines
from projects.controls.importers.meter import Meter
from projects.controls.importers.ticks import BIT, INPUTS, Tick

BUTTONS = {0: BIT["attack"], 1: BIT["use"]}
_KEYS = tuple(name for name in INPUTS if name not in ("attack", "use"))
_EXPECTED = "expected action.keyboard, action.mouse.camera and buttons, and timestamp"


class _Mouse(msgspec.Struct):
    camera: tuple[float, float]
    buttons: list[int]


class _Action(msgspec.Struct):
    keyboard: dict[str, bool | float]
    mouse: _Mouse


class _Line(msgspec.Struct):
    action: _Action
    timestamp: float


def recognises(start: bytes) -> bool:
    """Whether a file that starts with this line is such a log."""
    try:
        msgspec.json.decode(start, type=_Line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def ticks(path: Path, meter: Meter) -> Iterator[Tick]:
    before, start = 0, None
    for number, line in json_lines(path, _Line, _EXPECTED, meter):
        keyboard, mouse = line.action.keyboard, line.action.mouse
        missing = [key for key in _KEYS if key not in keyboard]
        if missing:
            raise bad_line(path, number, f"action.keyboard has no {missing[0]!r}; expected every key of a MineRL log")
        held = sum(BIT[key] for key in _KEYS if keyboard[key] > 0)
        for button, bit in BUTTONS.items():
            held |= bit if button in mouse.buttons else 0
        pitch, yaw = mouse.camera
        start = line.timestamp if start is None else start  # since 1970 there are too many seconds to be held exactly
        yield Tick(number, (line.timestamp - start) / 1000, held, held & ~before, (yaw, pitch))
        before = held
