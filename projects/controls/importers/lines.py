"""Logs of one JSON object a line, read line by line so that a log of any size needs little memory."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from engines.basics.errors import DataError
from projects.controls.importers.meter import Meter

LONGEST_LINE = 1 << 20
"""Bytes; a tick takes a few kilobytes at most."""

T = TypeVar("T")


def unreadable(path: Path, error: OSError) -> DataError:
    return DataError(f"{path}: cannot be read ({error.strerror or error}); expected a log.")


def bad_line(path: Path, number: int, what: str) -> DataError:
    return DataError(f"{path} line {number}: {what}.")


def size(path: Path) -> int:
    """Bytes."""
    try:
        return path.stat().st_size
    except OSError as error:
        raise unreadable(path, error) from None


def first_line(path: Path) -> bytes:
    """What a file begins with: its first line without a byte order mark, or as much of it as a line may have."""
    try:
        with open(path, "rb") as file:
            return file.readline(LONGEST_LINE).removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise unreadable(path, error) from None


def json_lines(path: Path, form: type[T], expected: str, meter: Meter) -> Iterator[tuple[int, T]]:
    """The number and the content of every line.

    A torn last line, the trace of a recorder that was killed, and lines that repeat the one before byte for byte are
    left out, and said so. Anything else that is not of the `form` raises `DataError` with the line and what was
    `expected`.
    """
    repeated: list[int] = []
    before = b""
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
                meter.read(len(line))
                if len(line) > LONGEST_LINE:
                    raise bad_line(path, number, f"has more than {LONGEST_LINE} bytes; {expected}")
                if line == before:
                    repeated.append(number)
                    continue
                before = line
                try:
                    content = msgspec.json.decode(line.removeprefix(codecs.BOM_UTF8), type=form)
                except msgspec.ValidationError as error:
                    raise bad_line(path, number, f"{error}; {expected}") from None
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    if number > 1 and not line.endswith(b"\n"):
                        meter.say(f"{path} line {number}: the last line is torn and left out.")
                        break
                    raise bad_line(path, number, f"not JSON ({error}); {expected}") from None
                yield number, content
    except OSError as error:
        raise unreadable(path, error) from None
    if repeated:
        meter.say(
            f"{path}: {len(repeated)} lines repeat the line before and are left out, the first is line {repeated[0]}."
        )
