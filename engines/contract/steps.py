"""Every logged step as fixed-width float64 records, in segments that readers map into memory.

A segment is `<n>.f64` (records, row after row) beside `<n>.json` (its column names). A new segment begins when the
columns change. The first two columns are always `step` and `attempt`.
"""

from __future__ import annotations

import errno
import json
import os
import re
import weakref
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from engines.basics import files
from engines.basics.reading import read_json

NUMBER = re.compile(r"[0-9]{1,9}")
"""The stem of a segment's file."""
FIXED = ("step", "attempt")
MOST_COLUMNS = 20_000
"""Of a segment; more is damage."""
DATA_WAIT = "data_wait"
"""Column of the seconds that a step waited for its batch."""
_ABSENT_BITS = np.uint64(0x7FF80000000007A2)
ABSENT = float(_ABSENT_BITS.view(np.float64))
"""In a record without a value of a column: a NaN, unlike a measured one by its payload (1954, as R's NA)."""


def logged(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which of `values` were logged, NaN or not: False where `ABSENT` stands."""
    there: npt.NDArray[np.bool_] = values.view(np.uint64) != _ABSENT_BITS
    return there


def segments_in(folder: Path) -> list[Path]:
    """The files of records in a folder, in order."""
    numbered = (file for file in folder.glob("*.f64") if NUMBER.fullmatch(file.stem) and file.is_file())
    return sorted(numbered, key=lambda file: int(file.stem))


def columns_of(segment: Path) -> list[str]:
    """Names of a segment's columns; none where the file that names them is damaged: its numbers mean nothing then."""
    try:
        columns = read_json(segment.with_suffix(".json"), list[str])
    except (OSError, msgspec.DecodeError):
        return []
    sound = len(FIXED) <= len(columns) <= MOST_COLUMNS and tuple(columns[: len(FIXED)]) == FIXED
    return columns if sound and len(set(columns)) == len(columns) else []


class StepWriter:
    """Appends records to the newest segment, after cutting off a record that an earlier writer left torn."""

    def __init__(self, folder: Path, columns: Sequence[str]) -> None:
        self.columns = [*FIXED, *columns]
        newest = next(reversed(segments_in(folder)), None)
        if newest is None or columns_of(newest) != self.columns:
            newest = folder / f"{1 if newest is None else int(newest.stem) + 1:05d}.f64"
            files.replace_bytes(newest.with_suffix(".json"), json.dumps(self.columns).encode())
        self._file = os.open(newest, os.O_WRONLY | os.O_APPEND | os.O_CREAT, files.FILE_MODE)
        self._close = weakref.finalize(self, os.close, self._file)  # a forgotten writer keeps no file open
        self._path = newest
        self._cut_torn_record()

    def append(self, records: npt.NDArray[np.float64]) -> None:
        """Append `records: (n, columns) float64` with one write. Raises OSError when the disk takes only a part."""
        data = np.ascontiguousarray(records).tobytes()
        if (written := os.write(self._file, data)) < len(data):
            os.ftruncate(self._file, os.fstat(self._file).st_size - written)  # all of it is written again, or none
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    def _cut_torn_record(self) -> None:
        width = 8 * len(self.columns)
        os.ftruncate(self._file, os.fstat(self._file).st_size // width * width)

    def close(self) -> None:
        self._close()


def read_segments(folder: Path) -> list[tuple[list[str], npt.NDArray[np.float64]]]:
    """Column names and memory-mapped records `(n, columns)` of each readable segment, without a torn last record."""
    found: list[tuple[list[str], npt.NDArray[np.float64]]] = []
    for file in segments_in(folder):
        columns = columns_of(file)
        if columns and (rows := file.stat().st_size // (8 * len(columns))):
            found.append((columns, np.memmap(file, np.float64, "r", shape=(rows, len(columns)))))
    return found


def read_series(folder: Path, column: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Steps and values of one column with one value a step, the newest attempt's: two `(n,)` arrays in step order."""
    parts = [
        np.stack([records[:, 0], records[:, 1], records[:, columns.index(column)]], axis=1)
        for columns, records in read_segments(folder)
        if column in columns
    ]
    if not parts:
        return np.empty(0), np.empty(0)
    rows = np.concatenate(parts)
    # An attempt supersedes all earlier records from its own first step on, so going backwards in time a record
    # counts only while its step is below everything seen since.
    lowest = np.minimum.accumulate(rows[::-1, 0])[::-1]
    kept = (rows[:, 0] < np.append(lowest[1:], np.inf)) & logged(rows[:, 2])
    return rows[kept, 0].copy(), rows[kept, 2].copy()
