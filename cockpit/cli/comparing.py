"""Runs side by side: what each reached in every metric, and where their configs differ."""

from __future__ import annotations

import argparse
import math
from typing import Any

from cockpit.cli import codes
from cockpit.cli.printing import show, show_json, show_table
from cockpit.core.config.diff import ABSENT
from cockpit.core.metrics.compare import Comparison, compare, require_comparable
from cockpit.core.metrics.compare_tables import Table, Value, config_rows, config_table, metric_rows, values_table
from engines.runs.store import find_training


def compare_runs(arguments: argparse.Namespace) -> int:
    """Print both tables of `cockpit compare RUN RUN…`, or show them with the curves. Raises `UserError`."""
    runs = [find_training(name) for name in arguments.runs]
    if arguments.open:
        from cockpit.cli.screen import open_app

        require_comparable(runs)
        return open_app(compare=runs)
    compared = compare(runs)
    if arguments.json:
        show_json(_facts(compared))
    else:
        _show(values_table(compared), "metric")
        show()
        _show(config_table(compared), "key")
    return codes.DONE


def _show(table: Table, first: str) -> None:
    if table.rows:
        show_table((first, *table.header[1:]), [[cell.text + cell.aside for cell in row] for row in table.rows])
    if table.note:
        show(table.note)


def _facts(compared: Comparison) -> dict[str, Any]:
    rows, equal = config_rows(compared)
    ids = [run.id for run in compared.runs]
    return {
        "runs": [
            {
                "id": run.id, "name": run.name, "project": run.project, "state": run.state,
                "epochs": run.epochs, "planned": run.planned,
            }
            for run in compared.runs
        ],
        "metrics": [
            {
                "name": row.name,
                "better": row.direction,
                "values": {run: _value(one) for run, one in zip(ids, row.values, strict=True) if one is not None},
                "best": [ids[place] for place in sorted(row.best)],
            }
            for row in metric_rows(compared)
        ],
        "config": [
            {"key": row.key, "values": {run: v for run, v in zip(ids, row.values, strict=True) if v is not ABSENT}}
            for row in rows
        ],
        "equal_keys": equal,
    }  # fmt: skip


def _value(one: Value) -> dict[str, float | None]:
    told = {"value": one.value, "epoch": one.epoch, "step": one.step, "lowest": one.low, "highest": one.high}
    return {name: value if math.isfinite(value) else None for name, value in told.items()}
