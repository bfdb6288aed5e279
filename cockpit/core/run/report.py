"""A run's report: the named tables in report.json."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cockpit.core.states import is_live
from engines.contract.errors import DataError
from engines.contract.rundir import RunDirectory
from engines.contract.state import State


@dataclass(frozen=True)
class NamedTable:
    name: str
    columns: tuple[Any, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""


def read_report(run: RunDirectory) -> list[NamedTable]:
    """The tables of the run's report. Raises FileNotFoundError without one, `DataError` for a damaged one."""
    try:
        found = json.loads(run.report.read_bytes())["tables"]
        return [_table(name, table) for name, table in found.items()]
    except FileNotFoundError:
        raise
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise DataError(f"{run.report} cannot be read as a report ({why}).") from None


def _table(name: str, table: Mapping[str, Any]) -> NamedTable:
    columns, rows = table["columns"], table["rows"]
    if not isinstance(columns, list) or not columns or not all(isinstance(row, list) for row in rows):
        raise ValueError(f"the table {name!r} is no columns and rows")
    return NamedTable(name, tuple(columns), tuple(map(tuple, rows)), str(table.get("note") or ""))


def no_report(run: RunDirectory, state: State) -> str:
    """Why there is none yet, or never will be, in a sentence."""
    with contextlib.suppress(DataError):  # told of by whoever shows the run
        if run.info.foreign:
            return "No report: a program that is not the cockpit's writes none."
    if is_live(state):
        return f"The report comes when the training finishes; it is {state} now."
    if state in ("finished", "early-stopped"):
        return "The run has ended without a report: its project makes none."
    return f"No report: it is written when a training finishes, and this one is {state}. Resume it to finish it."
