"""VPT contractor logs: a line a game tick with `mouse`, `keyboard`, the open screen, the hotbar slot and the view.

The game runs in a window of 1280 × 720 and turns the view by 360/2400 degrees a pixel of the mouse. Its tick counter,
20 a second, is the clock; where the computer's clock (`milli`) has gone on for long between two ticks, the game was
paused. Recorders miss the release of a mouse button that was down before they started, so that a left button that is
new on the very first line counts only once it is pressed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import numpy as np

from projects.controls.importers.lines import bad_line, json_lines
from projects.controls.importers.meter import Meter
from projects.controls.importers.minerl import BUTTONS
from projects.controls.importers.ticks import (
    BIT,
    DEGREES_PER_PIXEL,
    INVENTORY_SCREEN,
    LONGEST_STEP,
    NO_SCREEN,
    OTHER_SCREEN,
    SCREEN_PIXELS,
    UNSAID,
    Tick,
)

TICKS_A_SECOND = 20
_EXPECTED = (
    "expected mouse, keyboard.keys, isGuiOpen, hotbar, yaw, pitch and tick or milli, as VPT contractor logs have"
)
_KEYS = {
    f"key.keyboard.{key}": BIT[name]
    for key, name in {
        "w": "forward", "s": "back", "a": "left", "d": "right", "left.control": "sprint", "right.control": "sprint",
        "left.shift": "sneak", "right.shift": "sneak", "space": "jump", "q": "drop", "f": "swapHands", "e": "inventory",
        "escape": "ESC", **{str(slot): f"hotbar.{slot}" for slot in range(1, 10)},
    }.items()
}  # fmt: skip

_BUTTONS = BIT["attack"] | BIT["use"]

Name = TypeVar("Name", str, int)
Whole = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]


class _Mouse(msgspec.Struct):
    x: float | None = None
    y: float | None = None
    dx: float | None = None
    dy: float | None = None
    buttons: list[int] = []
    newButtons: list[int] | None = None


class _Keyboard(msgspec.Struct):
    keys: list[str]
    newKeys: list[str] | None = None


class _Line(msgspec.Struct):
    keyboard: _Keyboard
    mouse: _Mouse | None = None
    tick: Whole | None = None
    milli: float | None = None
    isGuiOpen: bool | None = None
    isGuiInventory: bool | None = None
    hotbar: Annotated[int, msgspec.Meta(ge=0, le=8)] | None = None
    yaw: float | None = None
    pitch: float | None = None


def recognises(start: bytes) -> bool:
    """Whether a file that starts with this line is such a log."""
    try:
        line = msgspec.json.decode(start, type=_Line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return line.mouse is not None or line.tick is not None


def ticks(path: Path, meter: Meter) -> Iterator[Tick]:
    before = _Before()
    without_mouse: list[int] = []
    for number, line in json_lines(path, _Line, _EXPECTED, meter):
        time = before.time_of(line)
        if time is None:
            raise bad_line(path, number, f"has no {'tick' if before.game_clock else 'milli'}; {_EXPECTED}")
        if line.mouse is None:
            without_mouse.append(number)
        yield before.tick(number, time, line)
    if without_mouse:
        meter.say(
            f"{path}: {len(without_mouse)} lines have no mouse, the first is line {without_mouse[0]}; their buttons "
            "are up, and their turn is that of yaw and pitch."
        )


@dataclass
class _Before:
    """What is remembered from line to line."""

    game_clock: bool | None = None
    """Whether the first line has a tick counter; then all must."""
    start: float = 0.0
    """Milliseconds of the computer's clock on the first line."""
    line: _Line | None = None
    time: float = 0.0
    paused: float = 0.0
    """Seconds that the computer's clock went on and the game's did not."""
    held: int = 0
    stuck: bool = False
    """The left button was new on the first line."""
    cursor: tuple[float, float] = (np.nan, np.nan)

    def time_of(self, line: _Line) -> float | None:
        """Seconds, or None where the line has not the clock that the first one had."""
        if self.game_clock is None:
            self.game_clock = line.tick is not None
            self.start = line.milli or 0.0
        if not self.game_clock:
            return None if line.milli is None else (line.milli - self.start) / 1000
        if line.tick is None:
            return None
        last = self.line
        if last is not None and last.milli is not None and line.milli is not None:
            passed = (line.milli - last.milli) / 1000
            self.paused += passed if passed > LONGEST_STEP else 0.0
        return line.tick / TICKS_A_SECOND + self.paused

    def tick(self, number: int, time: float, line: _Line) -> Tick:
        mouse, keyboard = line.mouse or _Mouse(), line.keyboard
        held = _bits(keyboard.keys, _KEYS) | _bits(mouse.buttons, BUTTONS)
        pressed = held & ~self.held
        if keyboard.newKeys is not None:
            pressed = (pressed & _BUTTONS) | _bits(keyboard.newKeys, _KEYS)
        if mouse.newButtons is not None:
            pressed = (pressed & ~_BUTTONS) | _bits(mouse.newButtons, BUTTONS)
        down = held
        if pressed & BIT["attack"]:
            self.stuck = self.line is None
        if self.stuck:
            held, pressed = held & ~BIT["attack"], pressed & ~BIT["attack"]
        x, y = self.cursor
        self.cursor = (
            x if mouse.x is None else min(max(mouse.x / SCREEN_PIXELS[0], 0.0), 1.0),
            y if mouse.y is None else min(max(mouse.y / SCREEN_PIXELS[1], 0.0), 1.0),
        )
        tick = Tick(
            number, time, held | pressed, pressed, self._turn(time, line), _screen(line), self.cursor,
            UNSAID if line.hotbar is None else line.hotbar,
        )  # fmt: skip
        self.line, self.time, self.held = line, time, down
        return tick

    def _turn(self, time: float, line: _Line) -> tuple[float, float]:
        """Yaw and pitch in degrees: what the mouse says or, where it says nothing, what the view has turned by."""
        mouse = line.mouse
        if mouse is not None and mouse.dx is not None and mouse.dy is not None:
            return mouse.dx * DEGREES_PER_PIXEL, mouse.dy * DEGREES_PER_PIXEL
        last = self.line
        if last is None or not 0 < time - self.time <= LONGEST_STEP:
            return 0.0, 0.0
        if line.yaw is None or line.pitch is None or last.yaw is None or last.pitch is None:
            return 0.0, 0.0
        return (line.yaw - last.yaw + 180) % 360 - 180, line.pitch - last.pitch


def _screen(line: _Line) -> int:
    if line.isGuiOpen is None:
        return UNSAID
    if not line.isGuiOpen:
        return NO_SCREEN
    return INVENTORY_SCREEN if line.isGuiInventory else OTHER_SCREEN


def _bits(inputs: Iterable[Name], table: Mapping[Name, int]) -> int:
    bits = 0
    for name in inputs:
        bits |= table.get(name, 0)
    return bits
