"""Named tables of `report.json`: a tab of the run's report each, printed by `cockpit report`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

Cell = str | float | int | None


@dataclass(frozen=True)
class Table:
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


def encode(tables: Mapping[str, Table]) -> bytes:
    """What `report.json` holds; a number that is not finite is null there."""
    return msgspec.json.encode({"tables": {name: msgspec.to_builtins(table) for name, table in tables.items()}})
