"""What a person did on each tick of a log, in one form for every kind of log, and the sittings that it falls into."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from projects.controls.importers.lines import bad_line
from projects.controls.importers.meter import Meter

INPUTS = (
    "forward", "back", "left", "right", "sprint", "sneak", "jump", "attack", "use", "drop", "swapHands", "inventory",
    "ESC", *(f"hotbar.{slot}" for slot in range(1, 10)),
)  # fmt: skip
"""Keys and mouse buttons by what they do, under the names of MineRL."""
BIT = {name: 1 << place for place, name in enumerate(INPUTS)}
UNSAID = -1
NO_SCREEN, INVENTORY_SCREEN, OTHER_SCREEN = 0, 1, 2
DEGREES_PER_PIXEL = 360 / 2400
"""What a mouse that moves by a pixel turns the view by."""
SCREEN_PIXELS = (1280, 720)
MOST_TURN = 180.0
"""Degrees a tick."""
LONGEST_STEP = 10.0
"""Seconds between two ticks that are still taken for one sitting."""

Rows = NDArray[np.void]


class Tick(NamedTuple):
    """time: seconds. held, pressed: bits of the inputs that are down, and of those that went down on this tick.

    turn: degrees, yaw and pitch. What a log does not say is derived later: screen (one of the three above), cursor
    (x, y in screen fractions, NaN for unsaid), slot (0 to 8).
    """

    line: int
    time: float
    held: int
    pressed: int
    turn: tuple[float, float]
    screen: int = UNSAID
    cursor: tuple[float, float] = (np.nan, np.nan)
    slot: int = UNSAID


_TICK = np.dtype([
    ("line", "i8"), ("time", "f8"), ("held", "u4"), ("pressed", "u4"), ("turn", "f8", 2),
    ("screen", "i1"), ("cursor", "f4", 2), ("slot", "i1"),
])  # fmt: skip


def packed(ticks: Iterable[Tick]) -> Rows:
    """Ticks as one array, 50 bytes each, filled while they are read."""
    return np.fromiter(ticks, _TICK)


def down(bits: NDArray[np.uint32], name: str) -> NDArray[np.bool_]:
    """(ticks,): where the bit of an input is set."""
    return (bits & BIT[name]) > 0


def sittings(path: Path, rows: Rows, meter: Meter) -> list[Rows]:
    """The log cut wherever the time goes back or jumps, since nobody knows what was done there.

    Raises `DataError` for a turn that nobody makes and for two different ticks of the same time.
    """
    turned = np.abs(rows["turn"]).max(axis=1, initial=0.0)
    fast = ~(turned <= MOST_TURN)
    if fast.any():
        at = int(fast.argmax())
        raise bad_line(
            path, int(rows["line"][at]),
            f"the view turns by {turned[at]:g} degrees, expected at most {MOST_TURN:g} a tick",
        )  # fmt: skip
    step = np.diff(rows["time"])
    if (step == 0).any():
        at = int((step == 0).argmax())
        raise bad_line(
            path, int(rows["line"][at + 1]),
            f"has the time of line {rows['line'][at]} and says something else; expected rising times",
        )  # fmt: skip
    cuts = np.flatnonzero(~((step > 0) & (step <= LONGEST_STEP))) + 1
    if len(cuts):
        lines = rows["line"][cuts].tolist()
        meter.say(
            f"{path}: cut into {len(cuts) + 1} sittings where the time goes back or jumps by more than "
            f"{LONGEST_STEP:g} s, before line {', '.join(map(str, lines[:5]))}{' …' if len(lines) > 5 else ''}."
        )
    return np.split(rows, cuts)
