"""Reading small files that anyone may have put there: regular ones of a bounded size, or an error in words."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TypeVar

import msgspec

Record = TypeVar("Record")
LARGEST_RECORD = 1 << 24
"""Bytes of a record or a report."""
LARGEST_CONFIG = 1 << 18
"""Bytes of a config: parsing one of this size takes seconds."""


def regular(path: str, flags: int) -> int:
    """An `opener` of files that end. Raises OSError for a pipe, which would wait for its writer, and for a device."""
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        folder = stat.S_ISDIR(mode)
        raise OSError(*((errno.EISDIR, "Is a directory") if folder else (errno.EINVAL, "it is no regular file")), path)
    return descriptor


def read_bytes(path: Path, most: int = LARGEST_RECORD) -> bytes:
    """The content of a regular file. Raises OSError, also for a pipe, a device, and more than `most` bytes."""
    with open(path, "rb", opener=regular) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    return content


def read_text(path: Path, most: int = LARGEST_CONFIG) -> str:
    """The same as text in UTF-8, with `\\n` alone at the ends of lines. Raises OSError and UnicodeDecodeError."""
    return read_bytes(path, most).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: Path, kind: type[Record]) -> Record:
    """The JSON document in a file, checked. Raises OSError and `msgspec.DecodeError`."""
    return decoded(read_bytes(path), kind)


def decoded(content: bytes, kind: type[Record]) -> Record:
    """The JSON document in `content`, checked. Raises `msgspec.DecodeError` alone, whatever is wrong with it."""
    try:
        return msgspec.json.decode(content, type=kind)
    except RecursionError:
        raise msgspec.DecodeError("it is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"it is not UTF-8 text ({error.reason} at byte {error.start})") from None
