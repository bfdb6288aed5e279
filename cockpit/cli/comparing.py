"""Runs side by side: any number of them in one table; of a few also what each metric reached, and all settings."""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

from rich.cells import cell_len

from cockpit.cli import codes
from cockpit.cli.printing import show, show_json, show_table
from cockpit.core.compare.drawn import Comparison, DrawnLines, Slot
from cockpit.core.compare.entries import Entry
from cockpit.core.compare.lines import every_run
from cockpit.core.compare.model import CompareModel
from cockpit.core.compare.table import Choice, LineTable, facts, find_source, plain_rows, turned
from cockpit.core.compare.tables import Table, Value, config_rows, config_table, metric_rows, values_table
from cockpit.core.config.diff import ABSENT
from cockpit.core.metrics.overlay import MOST
from cockpit.core.runs.fleet import Fleet
from cockpit.core.runs.run_order import matching, ordered
from cockpit.core.text import fit_left, fit_right
from cockpit.core.text_filter import TextFilter
from cockpit.core.text_table import BETWEEN, markdown
from engines.basics.errors import UserError
from engines.contract.rundir import RunDirectory
from engines.runs.store import find_training, runs_folder


def compare_runs(arguments: argparse.Namespace) -> int:
    """Print the table of `cockpit compare RUN…`, or open it with the curves. Raises `UserError`."""
    fleet = Fleet(runs_folder())
    runs = _runs(arguments, fleet)
    if arguments.open:
        from cockpit.cli.screen import open_app

        return open_app(compare=runs)
    model = CompareModel(runs, fleet)
    model.choose(Choice(apart=arguments.each))
    _read(model)
    order = arguments.sort.removeprefix("-")
    if order or arguments.columns:
        model.choose(_chosen(model, arguments.columns, order, turn=arguments.sort.startswith("-")))
        model.poll()
    few = _few(model) if len(runs) <= MOST else None
    if arguments.json:
        show_json(facts(model.compared, model.table) | {"runs": [_run(one) for one in model.compared.entries]}
                  | (_details(few, runs) if few is not None else {}))  # fmt: skip
    elif arguments.markdown:
        for line in markdown(*plain_rows(model.table)):
            show(line)
    else:
        _show_lines(model.table)
        if few is not None:
            show()
            _show(values_table(few), "metric")
            show()
            _show(config_table(few), "key")
    return codes.DONE


def _runs(arguments: argparse.Namespace, fleet: Fleet) -> list[RunDirectory]:
    """Those that are named, and those that the filter lets through, each once. Raises `UserError`."""
    named = [find_training(name) for name in arguments.runs]
    if arguments.filter:
        chosen = TextFilter.parse(arguments.filter)
        if chosen.problem:
            raise UserError(f"--filter {arguments.filter!r}: {chosen.problem.lower()}.")
        rows = ordered(matching(fleet.poll(most=sys.maxsize).changed, chosen), "", 0.0)
        named += [RunDirectory(row.path) for row in rows if not row.is_task]
    different = {run.path.resolve(): run for run in reversed(named)}
    if len(different) < 2:
        raise UserError(f"compare needs two different trainings or more; got {len(different)}.")
    return list(reversed(different.values()))


def _read(model: CompareModel) -> None:
    model.poll()
    while model.loading:
        model.poll()
    model.poll()


def _chosen(model: CompareModel, columns: str, order: str, *, turn: bool) -> Choice:
    """The choice with these columns and in this order. Raises `UserError` for what is no column."""
    table, choice = model.table, model.choice
    sources = [find_source(name.strip(), table) for name in columns.split(",") if name.strip()]
    written = ""
    if order:
        source = find_source(order, table)
        written = turned(source, ("", False))
        written = turned(source, (source, written.startswith("-"))) if turn else written
    return Choice(written, {table.projects: sources} if sources else {}, choice.apart)


def _show_lines(table: LineTable) -> None:
    """Numbers under the right end of their titles."""
    titles, rows = plain_rows(table)
    columns = []
    for place, title in enumerate(table.titles):
        texts = [titles[place], *(row[place] for row in rows)]
        asides = [0, *(cell_len(cells[place].aside) if place else 0 for cells in table.cells)]
        fit = fit_right if title.right else fit_left
        width = max(cell_len(text) - aside for text, aside in zip(texts, asides, strict=True)), max(asides)
        columns.append([
            fit(text[: len(text) - aside], width[0]) + fit_left(text[len(text) - aside :], width[1])
            for text, aside in zip(texts, asides, strict=True)
        ])  # fmt: skip
    for number, line in enumerate(zip(*columns, strict=True)):
        show(BETWEEN.join(line).rstrip())
        if not number:
            show(BETWEEN.join("-" * cell_len(text) for text in line))
    if table.note:
        show(table.note)


def _few(model: CompareModel) -> Comparison:
    """Each run as a line that is drawn, for the tables beside the charts."""
    drawn = DrawnLines()
    drawn.draw([Slot(line) for line in every_run(model.compared.entries)])
    drawn.poll()
    return drawn.comparison


def _show(table: Table, first: str) -> None:
    if table.rows:
        show_table((first, *table.header[1:]), [[cell.text + cell.aside for cell in row] for row in table.rows])
    if table.note:
        show(table.note)


# -- as JSON -----------------------------------------------------------------------------------------------------------


def _run(entry: Entry) -> dict[str, Any]:
    summary = entry.summary
    return {
        "id": entry.run.path.name,
        "name": entry.name,
        "project": summary.project if summary else "",
        "state": summary.state if summary else "",
        "problem": entry.problem,
        "tags": list(summary.tags) if summary else [],
        "epochs": int(summary.done) if summary else 0,
        "planned": int(summary.total) if summary else 0,
        "best_epoch": summary.best.epoch if summary and summary.best else None,
    }


def _details(few: Comparison, runs: list[RunDirectory]) -> dict[str, Any]:
    """Of each metric the best of every run, and the settings that differ, those without influence among them."""
    rows, equal = config_rows(few)
    ids = [run.path.name for run in runs]
    return {
        "metrics": [
            {
                "name": row.name,
                "better": row.direction,
                "values": {run: _value(one) for run, one in zip(ids, row.values, strict=True) if one is not None},
                "best": [ids[place] for place in sorted(row.best)],
            }
            for row in metric_rows(few)
        ],
        "config": [
            {"key": row.key, "values": {run: v for run, v in zip(ids, row.values, strict=True) if v is not ABSENT}}
            for row in rows
        ],
        "equal_keys": equal,
    }


def _value(one: Value) -> dict[str, float | None]:
    reached = {"value": one.value, "epoch": one.epoch, "step": one.step, "lowest": one.low, "highest": one.high}
    return {name: value if math.isfinite(value) else None for name, value in reached.items()}
