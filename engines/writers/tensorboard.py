"""TensorBoard event files, written without TensorBoard: records of protocol buffers, each with its checksums.

Field numbers are those of tensorflow's event.proto, summary.proto and tensor.proto; the records are TFRecords:
length, its masked CRC-32C, content, its masked CRC-32C. An attempt has a file of its own, in `tensorboard/` of the run.
"""

from __future__ import annotations

import os
import struct
import time
from typing import BinaryIO

from engines.basics import files
from engines.writers.writer import Beginning, Values

FOLDER = "tensorboard"
_POLYNOMIAL = 0x82F63B78
_STRING = 7


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_CRC = _crc_table()


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), as in RFC 3720."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _scalar(tag: str, value: float) -> bytes:
    """A Summary.Value with a simple_value."""
    try:
        number = struct.pack("<f", value)
    except OverflowError:  # beyond what the format holds
        number = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    return _bytes(1, tag.encode()) + b"\x15" + number


def _text(tag: str, text: str) -> bytes:
    """A Summary.Value that the Text tab shows; four spaces keep its lines as they are."""
    shown = "".join(f"    {line}\n" for line in text.splitlines())
    tensor = b"\x08" + _varint(_STRING) + _bytes(2, b"") + _bytes(8, shown.encode())
    return _bytes(1, tag.encode()) + _bytes(8, tensor) + _bytes(9, _bytes(1, _bytes(1, b"text")))


class TensorBoardWriter:
    def start(self, beginning: Beginning) -> None:
        folder = beginning.run.path / FOLDER
        files.make_directory(folder)
        path = folder / f"events.out.tfevents.{int(time.time())}.{beginning.info.id}.attempt-{beginning.attempt:03d}"
        self._file: BinaryIO = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, files.FILE_MODE), "wb")
        self._step = beginning.step
        self._record(_bytes(3, b"brain.Event:2"), 0, time.time())
        self._summary(_text("config", beginning.text), beginning.step, time.time())

    def log(self, step: int, time: float, values: Values) -> None:
        self._step = step
        self._summary(b"".join(_bytes(1, _scalar(tag, value)) for tag, value in values.items()), step, time, whole=True)

    def flush(self) -> None:
        self._file.flush()

    def close(self, reason: str) -> None:
        self._summary(_text("ended", reason), self._step, time.time())
        self._file.close()

    def _summary(self, content: bytes, step: int, moment: float, *, whole: bool = False) -> None:
        self._record(_bytes(5, content if whole else _bytes(1, content)), step, moment)

    def _record(self, what: bytes, step: int, moment: float) -> None:
        event = b"\x09" + struct.pack("<d", moment) + (b"\x10" + _varint(step) if step else b"") + what
        length = struct.pack("<Q", len(event))
        self._file.write(length + _masked(length) + event + _masked(event))
