"""The TFRecord framing of TensorBoard's event files, checked by its own CRCs and found again after damage.

A record is: length (u64), masked CRC32C of the length, the data, masked CRC32C of the data; all little-endian.
"""

from __future__ import annotations

import struct
from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

HEADER = 12
FOOTER = 4
LARGEST = 1 << 18
"""Bytes of a record that is read; longer ones are graphs and pictures, and are passed over unread."""
_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()
_TABLE_ARRAY = np.array(_TABLE, dtype=np.uint32)


def masked_crc(data: bytes) -> int:
    """CRC32C (Castagnoli), rotated and offset as the format wants it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF


def starts_record(data: bytes) -> bool:
    """Whether `data` begins with a record's header."""
    if len(data) < HEADER:
        return False
    return bool(masked_crc(data[:8]) == struct.unpack_from("<I", data, 8)[0])


def find_records(data: bytes, start: int) -> list[int]:
    """All places from `start` on that look like a record's header, in order; they are checked at once."""
    places = len(data) - start - HEADER + 1
    if places <= 0:
        return []
    raw: NDArray[np.uint8] = np.frombuffer(data, np.uint8)[start:]
    crc = np.full(places, 0xFFFFFFFF, dtype=np.uint32)
    for place in range(8):
        crc = _TABLE_ARRAY[(crc ^ raw[place : place + places]) & 0xFF] ^ (crc >> 8)
    crc = ~crc
    masked = (crc >> 15 | crc << 17) + np.uint32(_MASK)
    written = sum(raw[8 + byte : 8 + byte + places].astype(np.uint32) << (8 * byte) for byte in range(4))
    found: list[int] = (start + np.flatnonzero(masked == written)).tolist()
    return found


class RecordSplitter:
    """Cuts a stream of bytes into records; a torn one waits for its end."""

    def __init__(self) -> None:
        self.damaged = 0
        """Places where bytes were no records, or a record's data did not match its CRC."""
        self.skipped = 0
        """Records too long to be read."""
        self._data = b""
        self._lost = False
        self._to_skip = 0
        self._headers: list[int] | None = None
        """Places that look like headers, found once in what is there, however often it is damaged."""

    @property
    def unfinished(self) -> int:
        """Bytes of a record that waits for its end."""
        return len(self._data)

    def feed(self, data: bytes) -> list[bytes]:
        """The data of the records that are whole now."""
        passed = min(self._to_skip, len(data))
        self._to_skip -= passed
        self._data += data[passed:]
        self._headers = None
        records: list[bytes] = []
        place = 0
        while len(self._data) - place >= HEADER:
            if not starts_record(self._data[place : place + HEADER]):
                place = self._after_damage(place)
                continue
            self._lost = False
            (length,) = struct.unpack_from("<Q", self._data, place)
            end = place + HEADER + length + FOOTER
            if length > LARGEST:
                self.skipped += 1
                self._to_skip = max(0, end - len(self._data))
                place = min(end, len(self._data))
                continue
            if end > len(self._data):
                break
            record = self._data[place + HEADER : end - FOOTER]
            if masked_crc(record) == struct.unpack_from("<I", self._data, end - FOOTER)[0]:
                records.append(record)
            else:
                self.damaged += 1
            place = end
        self._data = self._data[place:]
        return records

    def _after_damage(self, place: int) -> int:
        """Where to read next: at the next header, else where one may still be beginning."""
        self.damaged += not self._lost
        self._lost = True
        if self._headers is None:
            self._headers = find_records(self._data, place + 1)
        after = bisect_right(self._headers, place)
        return self._headers[after] if after < len(self._headers) else len(self._data) - HEADER + 1
