"""Making, parsing and describing data."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from cockpit.cli import codes
from cockpit.cli.engine import ask_engine
from cockpit.cli.printing import show_json, show_named_tables
from cockpit.cli.tasks import Target, carry_out
from cockpit.core.failures import sentence
from engines.basics.errors import DataError, UserError
from engines.contract import spec as specs
from engines.contract.spec import Spec


def make(arguments: Namespace) -> int:
    given = {"sessions": arguments.sessions, "minutes": arguments.minutes, "seed": arguments.seed}
    task = {key: value for key, value in given.items() if value is not None}
    out = _absolute(arguments.out)
    target = Target(specs.find(arguments.project))
    return carry_out(target, "make", {"out": out, **task}, arguments.overrides, title=f"demo data in {out}")


def parse(arguments: Namespace) -> int:
    source, out = _absolute(arguments.source), _absolute(arguments.out)
    spec = _whose(source, arguments.project, "parses logs", lambda spec: "parse" in spec.tasks)
    task = {"source": source, "out": out}
    title = f"{source} parsed into {out}"
    return carry_out(Target(spec), "parse", task, arguments.overrides, title=title, json=arguments.json)


def stats(arguments: Namespace) -> int:
    path = _absolute(arguments.path)
    spec = _whose(path, arguments.project, "describes data", lambda spec: spec.stats is not None)
    tables = ask_engine("engines.stats", [spec.name, path], doing="reading the data")
    if arguments.json:
        show_json(tables)
    else:
        show_named_tables(tables)
    return codes.DONE


def _whose(path: str, name: str | None, does: str, able: Callable[[Spec], bool]) -> Spec:
    """The project whose data `path` is, or the one of that name. Raises `UserError` where it is not the only one."""
    if not Path(path).exists():
        raise DataError(f"{path}: there is no such file or folder.")
    if name is not None:
        if not able(spec := specs.find(name)):
            raise UserError(f"The project {name!r} has no part that {does}.")
        return spec
    candidates = [spec for spec in specs.installed().values() if isinstance(spec, Spec) and able(spec)]
    why_not = {spec.name: _why_not(spec, path) for spec in candidates}
    found = [spec for spec in candidates if why_not[spec.name] == ""]
    if len(found) == 1:
        return found[0]
    if found:
        names = " and ".join(spec.name for spec in found)
        raise UserError(f"{path} could be data of {names}; choose one with --project NAME.")
    looked = "; ".join(f"{name} found {why}" for name, why in why_not.items()) or f"no installed project {does}"
    raise DataError(f"{path} is not data of any installed project: {looked}; --project NAME reads it anyway.")


def _why_not(spec: Spec, path: str) -> str:
    """What the project looked for at `path` in vain; empty where it is its data."""
    if spec.reads is None:
        return "nothing, since it has no test for its data"
    try:
        return str(specs.load_function(spec.reads)(path))
    except (UserError, OSError) as error:
        return f"nothing that it can read ({sentence(error).rstrip('.')})"
    except Exception as error:  # one project must not keep the others from being asked
        return f"nothing that it can read ({type(error).__name__})"


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())
