"""Showing runs: the list, one run, its table as it grows, the tables it wrote."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any

import msgspec

from cockpit.cli import codes
from cockpit.cli.following import Watch
from cockpit.cli.printing import say, show, show_json, show_named_tables, show_pairs, show_table
from cockpit.cli.summary import Summary, short_of_any
from cockpit.core.format import duration, money, number, short_duration, size
from engines.contract.errors import DataError
from engines.contract.rundir import find_run, list_runs, runs_folder


def ls(arguments: Namespace) -> int:
    runs = [short_of_any(run) for run in list_runs()]
    if arguments.json:
        show_json(runs)
    elif not runs:
        say(f"no runs in {runs_folder()}; `cockpit demo` makes one")
    else:
        show_table(("run", "state", "epoch", "best", "age", "device", "label"), [_row(run) for run in runs])
    return codes.DONE


def _row(run: dict[str, Any]) -> tuple[Any, ...]:
    if run["state"] == "broken":
        return (run["id"], "broken", "", "", "", "", run["detail"])
    epoch = "" if run["epoch"] is None else f"{run['epoch']}/{run['epochs']}"
    best = "" if run["best_score"] is None else number(run["best_score"])
    age = short_duration(run["age_seconds"])
    return (run["id"], run["state"], epoch, best, age, run["device"], run["label"] or run["title"])


def show_run(arguments: Namespace) -> int:
    summary = Summary.read(find_run(arguments.run))
    facts = summary.full()
    if arguments.json:
        show_json(facts)
        return codes.DONE
    epoch = f"{facts['epoch']} of {facts['epochs']}, step {facts['step']}" if facts["epochs"] else ""
    best = f"{number(facts['best_score'])} in epoch {facts['best_epoch']}" if facts["best_epoch"] else ""
    saved = facts["checkpoint"]
    usd = facts["usd"]
    show_pairs(
        {
            "run": facts["id"],
            "state": facts["state"] + (f": {facts['detail']}" if facts["detail"] else ""),
            "project": f"{facts['project']}, {facts['title']}",
            "label": facts["label"],
            "created": _clock(facts["created"]),
            "ran": duration(facts["seconds"]) + (f", {money(usd)}" if usd is not None else ""),
            "device": facts["device"],
            "epoch": epoch,
            "best score": best,
            "weights": ", ".join(f"{head} {weight:g}" for head, weight in (facts["weights"] or {}).items()),
            "checkpoint": f"step {saved['step']}, {size(saved['size'])}" if saved else "",
            "damaged": f"{facts['damaged_lines']} lines of events.jsonl are no events" * bool(facts["damaged_lines"]),
            "directory": facts["path"],
        }
    )
    _show_lists(facts)
    return codes.DONE


def _show_lists(facts: dict[str, Any]) -> None:
    attempts = [
        (it["number"], _clock(it["started"]), _clock(it["ended"]), it["reason"] or "", it["error"] or "")
        for it in facts["attempts"]
    ]
    edits = [(edit["step"], edit["what"]) for edit in facts["edits"]]
    alerts = [(alert["step"], alert["level"], alert["text"]) for alert in facts["alerts"]]
    for columns, rows in (
        (("attempt", "started", "ended", "reason", ""), attempts),
        (("step", "edit"), edits),
        (("step", "alert", ""), alerts),
    ):
        if rows:
            show()
            show_table(columns, rows)


def _clock(seconds: float | None) -> str:
    """Local time with the zone's name."""
    return "" if seconds is None else time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(seconds))


def tail(arguments: Namespace) -> int:
    return Watch(find_run(arguments.run)).wait()


def report(arguments: Namespace) -> int:
    run = find_run(arguments.run)
    try:
        tables = msgspec.json.decode(run.report.read_bytes())["tables"]
    except FileNotFoundError:
        raise DataError(
            f"{run.info.id} has no report yet: it is written when a training finishes, and this one is "
            f"{Summary.read(run).status.state}."
        ) from None
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise DataError(f"{run.report} cannot be read as a report ({error}).") from None
    if arguments.json:
        show_json(tables)
    else:
        show_named_tables(tables)
    return codes.DONE
