"""Watching logs that other programs write: their charts on a terminal, else every metric's points and range as text."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from cockpit.cli import codes
from cockpit.cli.printing import say, show, show_json, show_table
from cockpit.cli.screen import has_terminal, open_app
from cockpit.core.foreign.kinds import Source
from cockpit.core.foreign.logs import Logs
from cockpit.core.format import number
from cockpit.core.series import Series
from cockpit.core.text import plain

REPRINT_SECONDS = 1.0
METRIC_COLUMNS = ("metric", "points", "nan", "first", "min", "max", "last", "step", "epoch", "old")


def watch(arguments: Namespace) -> int:
    """Show the logs' charts on a terminal; else print what they hold, again whenever they grow, until Ctrl-C."""
    logs = Logs([Path(path) for path in arguments.paths])
    if not (arguments.text or arguments.once or arguments.json) and has_terminal() and sys.stdout.isatty():
        return open_app(watch=logs, ascii_only=arguments.ascii)
    logs.read_all()
    _print(logs.sources, as_json=arguments.json)
    if arguments.once or arguments.json:
        return codes.DONE
    say("following; Ctrl-C only stops watching")
    while True:
        time.sleep(REPRINT_SECONDS)
        if logs.poll():
            show()
            _print(logs.sources, as_json=False)


def _print(sources: Iterable[Source], *, as_json: bool) -> None:
    if as_json:
        show_json({"logs": [_facts(source) for source in sources]})
        return
    for place, source in enumerate(sources):
        if place:
            show()
        show_log(source)


def show_log(source: Source) -> None:
    """One log's table and its damage."""
    show(plain(f"{source.title}: {source.kind}"))
    metrics = [describe(series) for series in source.series().values()]
    if metrics:
        show_table(METRIC_COLUMNS, [metric_row(metric) for metric in metrics])
    else:
        show("no rows yet")
    for problem in source.problems():
        show(plain(f"! {problem}"))


def _facts(source: Source) -> dict[str, Any]:
    return {
        "title": source.title,
        "path": str(source.path),
        "kind": source.kind,
        "metrics": [describe(series) for series in source.series().values()],
        "problems": list(source.problems()),
    }


def describe(series: Series) -> dict[str, Any]:
    """One metric in plain values; `first` and `last` are None where not finite, min and max leave such out."""
    finite = series.value[np.isfinite(series.value)]
    return {
        "name": series.name,
        "points": len(series.value),
        "nonfinite": len(series.value) - len(finite),
        "first": _number(series.value[:1]),
        "min": float(finite.min()) if len(finite) else None,
        "max": float(finite.max()) if len(finite) else None,
        "last": _number(series.value[-1:]),
        "last_step": _number(series.step[-1:]),
        "last_epoch": _number(series.epoch[-1:]),
        "old_branches": [len(steps) for steps, _ in series.old],
    }


def _number(values: np.ndarray) -> float | None:
    """The only one of at most one, None for a value that JSON cannot hold."""
    return float(values[0]) if len(values) and np.isfinite(values[0]) else None


def metric_row(metric: dict[str, Any]) -> tuple[Any, ...]:
    """What `METRIC_COLUMNS` show of a metric that `describe` gave."""
    values = (_digits(metric[key], 5) for key in ("first", "min", "max", "last"))
    places = (_digits(metric[key], 12) for key in ("last_step", "last_epoch"))
    return (metric["name"], metric["points"], metric["nonfinite"], *values, *places, len(metric["old_branches"]))


def _digits(value: float | None, digits: int) -> str:
    return number(value, f".{digits}g")
