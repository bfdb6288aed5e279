"""Showing runs: the list, one run, its table as it grows, the tables it wrote."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cockpit.cli import codes
from cockpit.cli.differing import show_differences
from cockpit.cli.following import Watch
from cockpit.cli.printing import say, show, show_json, show_named_tables, show_pairs, show_table
from cockpit.cli.summary import summarise
from cockpit.core.format import number
from cockpit.core.run.report import named_tables, no_report
from cockpit.core.runs.fleet import Fleet
from cockpit.core.runs.run_order import ORDERS, matching, ordered
from cockpit.core.runs.summary import RunSummary
from cockpit.core.states import is_live
from cockpit.core.text_filter import TextFilter
from cockpit.core.times import date_and_clock
from engines.basics.amounts import duration, money, short_duration, size
from engines.basics.errors import DataError, UserError
from engines.runs.spending import seconds_spent, usd_spent
from engines.runs.state import RunReader
from engines.runs.store import find_run, runs_folder

if TYPE_CHECKING:
    from cockpit.core.hosts.link import Link


def ls(arguments: Namespace) -> int:
    chosen = TextFilter.parse(arguments.filter)
    if chosen.problem:
        raise UserError(f"--filter {arguments.filter!r}: {chosen.problem.lower()}.")
    orders = {order.name: order.written for order in ORDERS}
    if arguments.sort and arguments.sort not in orders:
        raise UserError(f"--sort {arguments.sort!r}: expected one of {', '.join(orders)}.")
    links = _connected(arguments.hosts)
    found = Fleet(runs_folder(), beside=[link.folder for link in links]).poll(most=sys.maxsize).changed
    runs = ordered(matching(found, chosen), orders.get(arguments.sort, ""), time.time())
    if arguments.json:
        show_json([_facts(run) for run in runs])
    elif not runs and found:
        say(f"none of the {len(found)} runs match {arguments.filter!r}")
    elif not runs:
        say(f"no runs in {runs_folder()}; `cockpit demo` makes one")
    else:
        titles = ("run", "state", "done", "best", "age", "device", "label", "tags")
        shown = titles if any(run.tags for run in runs) else titles[:-1]
        show_table(shown, [_row(run)[: len(shown)] for run in runs])
    problems = [link.fault for link in links if link.fault]
    for problem in problems:
        say(problem)
    return codes.FAILED if problems else codes.DONE


def _connected(hosts: Sequence[str]) -> list[Link]:
    """The links to other machines; most often there are none."""
    if not hosts:
        return []
    from cockpit.cli.hosts import connected
    from cockpit.core.hosts.address import Host

    return connected([Host.parse(written) for written in hosts])


def _facts(run: RunSummary) -> dict[str, Any]:
    now = time.time()
    progress = (
        {"done": run.done, "total": run.total} if run.is_task else {"epoch": int(run.done), "epochs": int(run.total)}
    )
    return {
        "id": run.id,
        "host": run.host,
        "state": run.state,
        "detail": run.detail,
        "project": run.project,
        "kind": "task" if run.is_task else "training",
        "label": run.label,
        "notes": run.notes,
        "tags": list(run.tags),
        "title": run.title,
        "attempt": run.attempt,
        "alert": run.alert.text if run.alert else None,
        **progress,
        "best_score": run.score,
        "device": run.device,
        "created": run.created,
        "seconds": seconds_spent(run.spans, now),
        "usd": usd_spent(run.spans, now),
        "path": str(run.path),
    }


def _row(run: RunSummary) -> tuple[str, ...]:
    done = f"{run.done:,.0f}/{run.total:,.0f}" if run.total else ""
    best = "" if run.score is None else number(run.score)
    what = run.detail if run.state == "broken" else " · ".join(filter(None, (run.label or run.title, run.inherited)))
    state = f"{run.state} !" if run.alert else run.state
    return (
        run.on_host(run.id),
        state,
        done,
        best,
        short_duration(time.time() - run.created),
        run.device,
        what,
        " ".join(run.tags),
    )


def show_run(arguments: Namespace) -> int:
    run = find_run(arguments.run)
    if arguments.config_diff:
        return show_differences(run, arguments.config_diff, json=arguments.json)
    facts = summarise(run)
    if arguments.json:
        show_json(facts)
        return codes.DONE
    epoch = f"{facts['epoch'] or 0} of {facts['epochs']}" if facts["epochs"] else ""
    epoch += f", step {facts['step']}" if facts["epoch"] else ""
    whose = " of its parent" if facts["best_of_parent"] else ""
    best = f"{number(facts['best_score'])} in epoch {facts['best_epoch']}{whose}" if facts["best_epoch"] else ""
    saved = facts["checkpoint"]
    usd = facts["usd"]
    show_pairs(
        {
            "run": facts["id"],
            "state": facts["state"] + (f": {facts['detail']}" if facts["detail"] else ""),
            "project": f"{facts['project']}, {facts['title']}",
            "label": facts["label"],
            "notes": facts["notes"],
            "tags": " ".join(facts["tags"]),
            "created": _clock(facts["created"]),
            "forked from": _forked_from(facts["parent"], facts["fork_step"]),
            "ran": duration(facts["seconds"]) + (f", {money(usd)}" if usd is not None else ""),
            "device": facts["device"],
            "epoch": epoch,
            "best score": best,
            "weights": ", ".join(f"{head} {weight:g}" for head, weight in (facts["weights"] or {}).items()),
            "checkpoint": f"step {saved['step']}, {size(saved['size'])}" if saved else "",
            "damaged": f"{facts['damaged_lines']} damaged lines in events.jsonl" * bool(facts["damaged_lines"]),
            "made elsewhere": (facts["made_by"] or "by an unknown user") * facts["elsewhere"],
            "directory": facts["path"],
        }
    )
    _show_lists(facts)
    return codes.DONE


def _end(attempt: dict[str, Any], facts: dict[str, Any]) -> tuple[str, str]:
    """Reason and detail; of one that nobody lived to write down, what is known of the run."""
    newest = attempt is facts["attempts"][-1]
    if attempt["ended"] is None and newest and facts["state"] != "lost":
        return ("", "") if is_live(facts["state"]) else (facts["state"], facts["detail"])
    if attempt["ended"] is None:
        return "lost", "no end recorded (machine rebooted?)"
    return attempt["reason"] or "", attempt["detail"] or ""


def _show_lists(facts: dict[str, Any]) -> None:
    attempts = [
        (it["number"], _clock(it["started"]), _clock(it["ended"]), *_end(it, facts)) for it in facts["attempts"]
    ]
    edits = [(edit["step"], edit["what"]) for edit in facts["edits"]]
    refused = [(one["step"], one["what"], one["reason"]) for one in facts["refused"]]
    alerts = [(alert["step"], alert["level"], alert["text"]) for alert in facts["alerts"]]
    for columns, rows in (
        (("attempt", "started", "ended", "reason", ""), attempts),
        (("step", "edit"), edits),
        (("step", "refused", "because"), refused),
        (("step", "alert", ""), alerts),
    ):
        if rows:
            show()
            show_table(columns, rows)


def _clock(seconds: float | None) -> str:
    """Local time with the zone's name."""
    return "" if seconds is None else date_and_clock(seconds)


def tail(arguments: Namespace) -> int:
    return Watch(find_run(arguments.run), as_json=arguments.json).wait()


def report(arguments: Namespace) -> int:
    run = find_run(arguments.run)
    tables = named_tables(run)
    if not tables and not run.report.exists():
        raise DataError(f"{run.info.id}: {no_report(run, RunReader(run).status().state)}")
    if arguments.json:
        show_json(tables)
    elif not tables:
        say(f"{run.info.id} has a report without tables: its project writes none")
    else:
        show_named_tables(tables)
    return codes.DONE


def _forked_from(parent: str | None, step: int | None) -> str:
    return f"{parent}, step {step:,}" if parent and step is not None else parent or ""
