"""A run's report: the named tables in report.json."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import Any

from cockpit.core.failures import sentence
from cockpit.core.states import is_live
from cockpit.core.text import plain
from engines.basics.errors import DataError
from engines.basics.reading import read_bytes
from engines.contract.rundir import RunDirectory
from engines.runs.state import State


@dataclass(frozen=True)
class NamedTable:
    name: str
    columns: tuple[Any, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""


def read_report(run: RunDirectory) -> list[NamedTable]:
    """The tables of the run's report. Raises FileNotFoundError without one, `DataError` for a damaged one."""
    try:
        found = json.loads(read_bytes(run.report))
        tables = found.get("tables") if isinstance(found, dict) else None
        if not isinstance(tables, dict):
            raise DataError('it has no "tables": an object with a table under each name was expected')
        return [_table(name, table) for name, table in tables.items()]
    except FileNotFoundError:
        raise
    except (OSError, DataError) as error:
        why = sentence(error).removesuffix(".")
    except (ValueError, RecursionError) as error:
        why = f"it is not JSON: {error}"
    raise DataError(f"{run.report} cannot be read as a report ({why}).")


def named_tables(run: RunDirectory) -> dict[str, dict[str, Any]]:
    """The tables of the run's report by name, empty without one. Raises `DataError` for a damaged one."""
    try:
        found = read_report(run)
    except FileNotFoundError:
        return {}
    return {table.name: {"columns": table.columns, "rows": table.rows, "note": table.note} for table in found}


def _table(name: str, table: object) -> NamedTable:
    parts = table if isinstance(table, dict) else {}
    columns, rows = parts.get("columns"), parts.get("rows")
    if not (isinstance(columns, list) and columns and isinstance(rows, list)):
        raise DataError(f'the table "{plain(name)}" has no lists "columns" and "rows"')
    if not all(isinstance(row, list) for row in rows):
        raise DataError(f'the rows of the table "{plain(name)}" are not all lists')
    return NamedTable(name, tuple(columns), tuple(map(tuple, rows)), str(parts.get("note") or ""))


def no_report(run: RunDirectory, state: State) -> str:
    """Why there is none yet, or never will be, in a sentence."""
    with contextlib.suppress(DataError):  # reported by whoever shows the run
        if run.info.foreign:
            return "No report: runs of external programs write none."
        if run.info.kind == "task":
            return "No report: the task has written none" + (f" yet; it is {state} now." if is_live(state) else ".")
    if is_live(state):
        return (
            f"The report is written after a best epoch, at the latest when training finishes; the run is {state} now."
        )
    if state in ("finished", "early-stopped"):
        return "The run has no report: its project writes none."
    return f"No report: it is written when training finishes, and this run is {state}. Resume it to finish."
