"""The little of protobuf's wire format that reading scalars needs."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def varint(data: bytes, place: int) -> tuple[int, int]:
    """An unsigned number and the place behind it. Raises ValueError for one that does not end."""
    number = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            break
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, place
    raise ValueError("an unterminated number")


def signed(number: int) -> int:
    """A varint read as int64."""
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Every field of a message: its number, its wire type, and a number or the raw bytes. Raises ValueError."""
    place, end = 0, len(data)
    while place < end:
        key = data[place]
        key, place = (key, place + 1) if key < 0x80 else varint(data, place)  # nearly all are of one byte
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, place = varint(data, place)
            yield number, wire, value
            continue
        if wire == BYTES:
            short = place < end and data[place] < 0x80
            length, place = (data[place], place + 1) if short else varint(data, place)
        elif wire in (FIXED64, FIXED32):
            length = 8 if wire == FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire}")
        if place + length > end:
            raise ValueError("a field beyond its message")
        yield number, wire, data[place : place + length]
        place += length
