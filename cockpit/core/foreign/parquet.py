"""Parquet tables, as W&B gives the history of a run: a row per record, where pyarrow is installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from cockpit.core.foreign.reader import NotNow, WholeReader
from cockpit.core.foreign.rows import Row, row_of

MARK = b"PAR1"
LARGEST = 1 << 27
"""Numbers in a table: it is read as one."""


def is_readable(head: bytes) -> bool:
    """Whether it begins as Parquet does and can be read here."""
    return head.startswith(MARK) and importlib.util.find_spec("pyarrow") is not None


def parquet_reader(path: Path) -> WholeReader:
    """A reader of a table."""
    return WholeReader(path, _read)


def _read(path: Path) -> list[Row]:
    import pyarrow

    try:
        return _rows(path)
    except (pyarrow.ArrowException, ValueError) as error:
        words = " ".join(str(error).split())[:100]
        raise NotNow(f"The table cannot be read ({words}); it is read again when it changes.") from None


def _rows(path: Path) -> list[Row]:
    """Of numbers and words; columns of lists and pictures are left out. Raises ValueError."""
    import pyarrow.parquet as pq

    found = []
    with pq.ParquetFile(path) as table:
        names = [field.name for field in table.schema_arrow if _holds_numbers(field.type)]
        if len(names) * table.metadata.num_rows > LARGEST:
            raise ValueError(f"{len(names)} columns of {table.metadata.num_rows:,} rows are too many")
        for batch in table.iter_batches(batch_size=4096, columns=names):
            for record in batch.to_pylist():
                row = row_of({name: value for name, value in record.items() if value is not None})
                if row.values:
                    found.append(row)
    return found


def _holds_numbers(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_string, types.is_large_string)
    return any(test(kind) for test in tests)
