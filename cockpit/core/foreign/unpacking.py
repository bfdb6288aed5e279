"""Files as they lie on disks: packed by gzip, or in UTF-16 as Windows PowerShell writes what is redirected with `>`."""

from __future__ import annotations

import codecs
import zlib
from pathlib import Path

from engines.basics.jsonl import ByteFollower, LineFollower

AT_ONCE = 1 << 24
"""Bytes read, or unpacked, in one call, so that a screen shows a long log while it is still being read."""
PIECE = 1 << 12
"""Packed bytes given to zlib at once: it copies what is left of them after each member, and members may be tiny."""
GZIP = b"\x1f\x8b"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class _Layer:
    """A way of writing bytes, which the first two of a file tell."""

    def __init__(self) -> None:
        self._head: bytes | None = b""
        """What has come, until it tells."""

    def feed(self, data: bytes) -> bytes:
        """The bytes that these, which come next in the file, stand for."""
        if self._head is not None:
            data = self._head + data
            self._head = data if len(data) < 2 else None
            if self._head is not None:
                return b""
            self._begin(data[:2])
        return self._read(data)

    def _begin(self, mark: bytes) -> None:
        raise NotImplementedError

    def _read(self, data: bytes) -> bytes:
        raise NotImplementedError


class Gzip(_Layer):
    """One gzip member after another (whoever appends writes a new one); what is torn waits for its end."""

    def __init__(self) -> None:
        super().__init__()
        self.damage = ""
        """Why nothing behind this place can be unpacked."""
        self.waiting = False
        """Whether there is more to give without more to read: a call gives at most `AT_ONCE`."""
        self._member: zlib._Decompress | None = None
        self._packed = b""

    def _begin(self, mark: bytes) -> None:
        self._member = zlib.decompressobj(wbits=31) if mark == GZIP else None

    def _read(self, data: bytes) -> bytes:
        if self._member is None:
            return data
        packed, at, parts, left = self._packed + data, 0, [], AT_ONCE
        self.waiting = True
        while self.waiting and left and not self.damage:
            piece = packed[at : at + PIECE]
            try:
                parts.append(self._member.decompress(piece, left))
            except zlib.error as error:
                self.damage = str(error)
                break
            left -= len(parts[-1])
            at += len(piece) - len(self._member.unconsumed_tail) - len(self._member.unused_data)
            if self._member.eof:
                self._member = zlib.decompressobj(wbits=31)
            self.waiting = at < len(packed) or not left
        self._packed = packed[at:]
        if self.damage:
            self._packed, self.waiting = b"", False
        return b"".join(parts)


class Utf16(_Layer):
    """Made UTF-8."""

    _decoder: codecs.IncrementalDecoder | None = None

    def _begin(self, mark: bytes) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-16")("replace") if mark in UTF_16 else None

    def _read(self, data: bytes) -> bytes:
        return data if self._decoder is None else self._decoder.decode(data).encode()


class Unpacker:
    """Makes the bytes of a file, as they come, those of its text in UTF-8."""

    def __init__(self) -> None:
        self.gzip = Gzip()
        self._utf16 = Utf16()

    def feed(self, data: bytes) -> bytes:
        return self._utf16.feed(self.gzip.feed(data))


def unpack(data: bytes, most: int) -> bytes:
    """All of a file's text in UTF-8. Raises ValueError where it is damaged, or holds more than `most` bytes."""
    unpacker = Unpacker()
    text = unpacker.feed(data)
    while unpacker.gzip.waiting and len(text) <= most:
        text += unpacker.feed(b"")
    if unpacker.gzip.damage or len(text) > most:
        raise ValueError(unpacker.gzip.damage or f"it holds more than {most:,} bytes")
    return text


class _Unpacked(ByteFollower):
    """Gives the text of what was appended, at most `at_once` bytes of the file in one call."""

    def __init__(self, path: Path, at_once: int = AT_ONCE) -> None:
        super().__init__(path, at_once)
        self._begun = self.restarts
        self._unpacker = Unpacker()

    @property
    def damage(self) -> str:
        """Why the rest of the file cannot be unpacked; empty where it can."""
        return self._unpacker.gzip.damage

    def poll_bytes(self) -> bytes:
        data = super().poll_bytes()
        if self.restarts != self._begun:
            self._begun, self._unpacker = self.restarts, Unpacker()
        return self._unpacker.feed(data)


class UnpackedBytes(_Unpacked):
    """Follows a file of bytes."""


class UnpackedLines(_Unpacked, LineFollower):
    """Follows a text line by line."""


class PrintedLines(UnpackedLines):
    """Follows what a program prints: a carriage return ends a line too, which a progress bar then prints again."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, AT_ONCE >> 4)  # such lines take sixteen times as long to read

    def poll_bytes(self) -> bytes:
        return super().poll_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
