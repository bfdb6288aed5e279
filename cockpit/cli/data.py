"""Making, parsing and describing data."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from cockpit.cli import codes
from cockpit.cli.engine import ask_engine
from cockpit.cli.following import start_and_attend
from cockpit.cli.printing import show_json, show_named_tables
from engines.basics import yaml12
from engines.basics.errors import DataError, UserError, nearest
from engines.contract import spec as specs
from engines.runs import launch


def make(arguments: Namespace) -> int:
    given = {"sessions": arguments.sessions, "minutes": arguments.minutes, "seed": arguments.seed}
    task = {key: value for key, value in given.items() if value is not None}
    out = _absolute(arguments.out)
    return _do(arguments.project, "make", {"out": out, **task}, arguments.overrides, title=f"demo data in {out}")


def parse(arguments: Namespace) -> int:
    source, out = _absolute(arguments.source), _absolute(arguments.out)
    if not Path(source).exists():
        raise DataError(f"{source}: there is no such file or folder to parse.")
    task = {"source": source, "out": out}
    return _do(arguments.project, "parse", task, arguments.overrides, title=f"{source} parsed into {out}")


def stats(arguments: Namespace) -> int:
    spec = specs.find(arguments.project)
    if spec.stats is None:
        raise UserError(f"The project {spec.name!r} describes no data.")
    tables = ask_engine("engines.stats", [spec.name, _absolute(arguments.path)], doing="reading the data")
    if arguments.json:
        show_json(tables)
    else:
        show_named_tables(tables)
    return codes.DONE


def _do(project: str, task: str, arguments: dict[str, Any], overrides: list[str], *, title: str) -> int:
    """Run a project's task under a supervisor and stay with it."""
    spec = specs.find(project)
    if task not in spec.tasks:
        raise UserError(f"The project {spec.name!r} has no task {task!r}{nearest(task, spec.tasks)}.")
    for text in overrides:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UserError(f"--set {text}: expected key=value.")
        arguments[key] = yaml12.read_value(value)
    return start_and_attend(launch.prepare_task(spec.name, task, arguments, title=title))


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())
