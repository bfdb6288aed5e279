"""Action lists: one JSON array with an object a tick, in which a key that is held is present (`"forward": 1`) and
`camera` is [pitch, yaw] in degrees. There are no times: a tick is a twentieth of a second."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

import msgspec

from engines.basics.errors import DataError
from projects.controls.importers.lines import size, unreadable
from projects.controls.importers.meter import Meter
from projects.controls.importers.ticks import BIT, MOST_TURN, Tick

TICK_SECONDS = 1 / 20
_MOST_MEGABYTES = 200
"""An array is read whole, and needs about ten times its size while it is."""
_EXPECTED = "expected one JSON array with an object a tick, each with camera [pitch, yaw] and the keys that are held"

_Item = dict[str, bool | float | list[float]]


def recognises(start: bytes) -> bool:
    """Whether a file that starts with this is such a log."""
    opened = b"".join(start[:1000].split())
    return opened.startswith(b"[{") and b'"camera"' in start[:1000]


def ticks(path: Path, meter: Meter) -> Iterator[Tick]:
    before = 0
    for number, item in enumerate(_items(path, meter), 1):
        camera = item.get("camera")
        if not (isinstance(camera, list) and len(camera) == 2):
            raise DataError(f"{path} tick {number}: camera is {camera}, expected [pitch, yaw] in degrees.")
        pitch, yaw = camera
        if max(abs(pitch), abs(yaw)) > MOST_TURN:
            raise DataError(f"{path} tick {number}: camera is {camera}, expected at most {MOST_TURN:g} degrees a tick.")
        held = sum(bit for key, bit in BIT.items() if item.get(key))
        yield Tick(number, number * TICK_SECONDS, held, held & ~before, (yaw, pitch))
        before = held


def _items(path: Path, meter: Meter) -> list[_Item]:
    megabytes = size(path) // 1_000_000
    if megabytes > _MOST_MEGABYTES:
        raise DataError(
            f"{path}: has {megabytes} MB, expected at most {_MOST_MEGABYTES} MB in one array; split the log."
        )
    try:
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise unreadable(path, error) from None
    meter.read(len(content))
    try:
        return msgspec.json.decode(content, type=list[_Item])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{path}: not an action list ({error}); {_EXPECTED}.") from None
