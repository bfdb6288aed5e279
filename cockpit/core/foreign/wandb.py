"""W&B's own file of a run (`wandb/offline-run-…/run-….wandb`): the history in it, live and without an account.

The framing is LevelDB's log, behind 7 bytes of the file's own: blocks of 32 KiB, in them fragments of a CRC-32 of type
and data, a length, a type, and the data. Field numbers are those of wandb's wandb_internal.proto.
"""

from __future__ import annotations

import functools
import json
import struct
import zlib
from typing import Any

from cockpit.core.foreign import wire
from cockpit.core.foreign.records import RecordReader
from cockpit.core.foreign.rows import Row, row_of
from cockpit.core.foreign.unpacking import AT_ONCE

MARK = b":W&B"
BLOCK = 1 << 15
HEADER = 7
"""Bytes before a fragment; as many as the file's own header has."""
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
_HISTORY, _ITEM, _KEY, _NESTED_KEY, _VALUE = 2, 1, 1, 2, 16


def begins_wandb(head: bytes) -> bool:
    return head.startswith(MARK)


class BlockSplitter:
    """Cuts the stream of a file into records; behind damage it goes on with the next block."""

    def __init__(self) -> None:
        self.damaged = 0
        self._data = b""
        self._begins = 0
        """Place in the file of the first byte of `_data`."""
        self._next = HEADER
        """Place in the file of the next fragment."""
        self._parts: list[bytes] = []
        """Fragments of a record that is not whole yet."""

    @property
    def unfinished(self) -> int:
        return sum(map(len, self._parts)) + max(0, self._begins + len(self._data) - self._next)

    def feed(self, data: bytes) -> list[bytes]:
        self._data += data
        records: list[bytes] = []
        while (place := self._next - self._begins) + HEADER <= len(self._data):
            left = BLOCK - self._next % BLOCK
            if left < HEADER:
                self._next += left
                continue
            crc, length, kind = struct.unpack_from("<IHB", self._data, place)
            end = place + HEADER + length
            known = kind in (FULL, FIRST, MIDDLE, LAST) and HEADER + length <= left
            if known and end > len(self._data):
                break
            if not known or zlib.crc32(self._data[place + HEADER - 1 : end]) != crc:
                self.damaged += 1
                self._parts, self._next = [], self._next + left
                continue
            self._take(kind, self._data[place + HEADER : end], records)
            self._next += HEADER + length
        kept = min(self._next - self._begins, len(self._data))
        self._data, self._begins = self._data[kept:], self._begins + kept
        return records

    def _take(self, kind: int, data: bytes, records: list[bytes]) -> None:
        if kind in (FULL, FIRST):
            self._parts = [data]
        elif self._parts:  # else its beginning was damaged
            self._parts.append(data)
        if kind in (FULL, LAST) and self._parts:
            records.append(b"".join(self._parts))
            self._parts = []


def row_of_record(record: bytes) -> Row | None:
    """The numbers of a Record's history, None of another record. Raises ValueError."""
    for number, kind, value in wire.fields(record):
        if number == _HISTORY and kind == wire.BYTES and isinstance(value, bytes):
            items = (item for field, _, item in wire.fields(value) if field == _ITEM and isinstance(item, bytes))
            return row_of(dict(map(_item, items)))
    return None


def _item(item: bytes) -> tuple[str, Any]:
    """Name and value; nested names joined by dots. Media are objects with a `_type`, and no numbers."""
    names: list[str] = []
    value: Any = None
    for number, _, data in wire.fields(item):
        if number in (_KEY, _NESTED_KEY) and isinstance(data, bytes):
            names.append(data.decode("utf-8", "replace"))
        elif number == _VALUE and isinstance(data, bytes):
            value = _value(data)
    return ".".join(names), None if isinstance(value, dict) and "_type" in value else value


def _value(text: bytes) -> Any:
    """Of JSON; nearly all are numbers, and read three times as fast as such."""
    try:
        return float(text)
    except ValueError:
        return json.loads(text)


WandbReader = functools.partial(RecordReader, make_splitter=BlockSplitter, row_of=row_of_record, at_once=AT_ONCE >> 4)
