"""Event files made by hand: protobuf and TFRecord written field by field, with a CRC computed bit by bit."""

from __future__ import annotations

import struct

_MASK = 0xA282EAD8


def crc32c(data: bytes) -> int:
    """Castagnoli's CRC by long division, one bit at a time."""
    register = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            top = (register ^ byte >> bit) & 1
            register = register >> 1 ^ (0x82F63B78 if top else 0)
    return register ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + _MASK) % 2**32)


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def varint(number: int) -> bytes:
    number %= 2**64
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def message(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def simple(tag: str, value: float) -> bytes:
    """A Summary.Value with a simple value."""
    return message(1, tag.encode()) + b"\x15" + struct.pack("<f", value)


def tensor(tag: str, dtype: int, content: bytes) -> bytes:
    """A Summary.Value with a tensor of rank 0: `content` is the TensorProto behind its type and shape."""
    return message(1, tag.encode()) + message(8, b"\x08" + varint(dtype) + message(2, b"") + content)


def event(*values: bytes, step: int = 0, time: float = 1.7e9) -> bytes:
    summary = b"".join(message(1, value) for value in values)
    at = b"\x10" + varint(step) if step else b""
    return b"\x09" + struct.pack("<d", time) + at + message(5, summary)


VERSION = b"\x09" + struct.pack("<d", 1.7e9) + message(3, b"brain.Event:2")
