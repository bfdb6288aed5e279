"""Making, parsing and describing data."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from cockpit.cli import codes
from cockpit.cli.engine import ask_engine
from cockpit.cli.printing import show_json, show_named_tables
from cockpit.cli.tasks import Target, carry_out
from engines.basics.errors import DataError, UserError
from engines.contract import spec as specs


def make(arguments: Namespace) -> int:
    given = {"sessions": arguments.sessions, "minutes": arguments.minutes, "seed": arguments.seed}
    task = {key: value for key, value in given.items() if value is not None}
    out = _absolute(arguments.out)
    target = Target(specs.find(arguments.project))
    return carry_out(target, "make", {"out": out, **task}, arguments.overrides, title=f"demo data in {out}")


def parse(arguments: Namespace) -> int:
    source, out = _absolute(arguments.source), _absolute(arguments.out)
    if not Path(source).exists():
        raise DataError(f"{source}: there is no such file or folder to parse.")
    task = {"source": source, "out": out}
    target = Target(specs.find(arguments.project))
    return carry_out(target, "parse", task, arguments.overrides, title=f"{source} parsed into {out}")


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


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())
