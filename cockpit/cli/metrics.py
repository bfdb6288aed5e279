"""A run's metrics as data: every value with its step, epoch and time, as a table, CSV or JSON."""

from __future__ import annotations

import csv
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cockpit.cli import codes
from cockpit.cli.printing import say, show_json, show_table
from cockpit.cli.watch import METRIC_COLUMNS, describe, metric_row
from cockpit.core.metrics.run_metrics import RunMetrics
from cockpit.core.series import Series
from cockpit.core.text import plain
from engines.basics.errors import DataError, UserError, nearest
from engines.contract.rundir import RunDirectory
from engines.runs.store import find_training


def metrics(arguments: Namespace) -> int:
    """Print a run's metrics: a line each, or all their values with `--csv` or `--json`. Raises `UserError`."""
    run = find_training(arguments.run)
    found = chosen(run, arguments.metrics)
    if arguments.json:
        show_json({"run": run.info.id, "metrics": {name: _facts(series) for name, series in found.items()}})
    elif arguments.csv:
        _write_csv(found)
    else:
        show_table(METRIC_COLUMNS, [metric_row(describe(series)) for series in found.values()])
    return codes.DONE


def chosen(run: RunDirectory, names: Sequence[str]) -> Mapping[str, Series]:
    """The metrics of a run by name, in the order of `names`; without names all of them.

    Raises `DataError` where there are none, `UserError` for a name that is no metric.
    """
    source = RunMetrics(run, run.info.id)
    source.poll()
    for problem in source.problems():
        say(f"{run.info.id}: {problem}")
    found = source.series()
    if not found:
        raise DataError(f"{run.info.id} has no metrics yet: no step and no epoch is logged.")
    for name in names:
        if name not in found:
            raise UserError(
                f"{name!r} is not a metric of {run.info.id}{nearest(name, found)}; `metrics {run.info.id}` lists them."
            )
    return {name: found[name] for name in names} if names else found


def _facts(series: Series) -> dict[str, list[float | None]]:
    parts = {"step": series.step, "epoch": series.epoch, "time": series.time, "value": series.value}
    return {name: [float(one) if np.isfinite(one) else None for one in part] for name, part in parts.items()}


def _write_csv(found: Mapping[str, Series]) -> None:
    """One row per step at which something was logged, in order, with a column per metric; empty where it was not."""
    rows: dict[float, dict[str, Any]] = {}
    for name, series in found.items():
        for step, epoch, time, value in zip(series.step, series.epoch, series.time, series.value, strict=True):
            row = rows.setdefault(float(step), {})
            row.setdefault("epoch", _cell(epoch))
            row.setdefault("time", _cell(time))
            row[f"metric {name}"] = repr(float(value))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["step", "epoch", "time", *(plain(name) for name in found)])
    for step in sorted(rows):
        row = rows[step]
        writer.writerow([_cell(step), row["epoch"], row["time"], *(row.get(f"metric {name}", "") for name in found)])


def _cell(value: float) -> str:
    if not np.isfinite(value):
        return ""
    return str(int(value)) if float(value).is_integer() else repr(float(value))
