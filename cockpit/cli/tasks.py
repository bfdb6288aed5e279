"""Tasks, the other long work that a project does: listed, started, and followed to their end."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cockpit.cli import codes
from cockpit.cli.following import start_and_attend
from cockpit.cli.printing import say, show_json, show_named_tables, show_table
from cockpit.core.run.report import named_tables
from engines.basics import yaml12
from engines.basics.errors import UserError
from engines.contract import spec as specs
from engines.contract.rundir import RunDirectory
from engines.contract.spec import Spec
from engines.runs import launch
from engines.runs.state import RunReader
from engines.runs.store import find_training
from engines.runs.trust import is_from_elsewhere

NEEDS = {"": "PROJECT", "config": "CONFIG", "run": "RUN"}


@dataclass(frozen=True)
class Target:
    """What a task is started with: a project, one of its configs, or one of its runs."""

    spec: Spec
    config: Path | None = None
    """Also of a run."""
    run: RunDirectory | None = None

    @classmethod
    def find(cls, name: str) -> Target:
        """A `.yaml` file is a config, the name of an installed project that project, all else a run.

        Raises `UserError`.
        """
        if name.endswith((".yaml", ".yml")):
            from engines.contract.config import project_of, read_config

            tree, lines, _ = read_config(Path(name))
            return cls(project_of(tree, name, lines), Path(name))
        if name in specs.names():
            return cls(specs.find(name))
        try:
            run = find_training(name)
        except UserError as error:
            known = ", ".join(specs.names()) or "none"
            raise UserError(
                f"{str(error).removesuffix('.')}; it is not a project (installed: {known}) or a .yaml file either.",
                exit_code=error.exit_code,
            ) from None
        return cls(specs.of_run(run.info, "no tasks"), run.config, run)

    def arguments(self, task: str, overrides: Sequence[str]) -> dict[str, Any]:
        """What a task gets of this target, with the changes that are the config's. Raises `UserError`."""
        needs = self.spec.task(task).needs
        if needs == "run" and self.run is not None:
            return {"run": str(self.run.path.absolute())}
        if needs == "config" and self.config is not None:
            if self.run is not None and is_from_elsewhere(self.run.info):
                raise UserError(
                    f"{self.run.info.id} was made elsewhere, and {task} runs code that its config names; "
                    f"read the config, then name it in place of the run: {self.config}"
                )
            from engines.contract.config import load_config, with_absolute_data

            loaded = with_absolute_data(load_config(self.config, [text for text in overrides if _of_config(text)]))
            return {"config": loaded.settings.model_dump(mode="json")}
        if needs:
            kinds = {"run": "a run", "config": "a config or a run"}
            raise UserError(f"{task} of {self.spec.name} needs {kinds[needs]}: `cockpit task {NEEDS[needs]} {task}`.")
        return {}


def task(arguments: Namespace) -> int:
    """List the tasks of a project, or do one."""
    target = Target.find(arguments.target)
    if arguments.name is None:
        return _list(target.spec, json=arguments.json)
    return carry_out(target, arguments.name, {}, arguments.overrides, json=arguments.json)


def rollout(arguments: Namespace) -> int:
    return of_run(arguments, "rollout", {})


def of_run(arguments: Namespace, name: str, given: Mapping[str, Any]) -> int:
    """A task of a training, by a command of its own."""
    run = find_training(arguments.run)
    target = Target(specs.of_run(run.info, f"nothing to {name}"), run.config, run)
    return carry_out(target, name, given, arguments.overrides, json=arguments.json)


def carry_out(
    target: Target,
    name: str,
    given: Mapping[str, Any],
    overrides: Sequence[str],
    *,
    title: str = "",
    json: bool = False,
) -> int:
    """Do a task under a supervisor and stay with it; its exit code. Then show its report, or with `json` its outcome.

    Raises `UserError` for a task that there is not, or that needs another target.
    """
    of_task = overrides
    if target.spec.task(name).needs == "config":
        of_task = [text for text in overrides if not _of_config(text)]
    order = {**given, **parsed(of_task), **target.arguments(name, overrides)}
    about = target.run.info.id if target.run else str(target.config or target.spec.name)
    run = launch.prepare_task(target.spec.name, name, order, title=title or f"{name} of {about}")
    code = start_and_attend(run)
    tables = named_tables(run)
    if json:
        status = RunReader(run).status()
        show_json(
            {
                "run": run.info.id, "task": name, "project": target.spec.name, "state": status.state,
                "detail": status.detail, "exit_code": code, "path": str(run.path), "tables": tables,
                **_counts(tables),
            }
        )  # fmt: skip
    else:
        show_named_tables(tables)
    return code


def _counts(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the tables `counts` and `left` of a report say, by name: how much a task has read, and left by reason."""
    found = {
        name: dict(row[:2] for row in table["rows"]) for name, table in tables.items() if name in ("counts", "left")
    }
    return {**found.get("counts", {}), **({"left": found["left"]} if "left" in found else {})}


def parsed(overrides: Sequence[str]) -> dict[str, Any]:
    """The arguments that `--set key=value` give a task. Raises `UserError`."""
    found = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UserError(f"--set {text}: expected key=value.")
        found[key] = yaml12.read_value(value)
    return found


def _of_config(override: str) -> bool:
    """Whether it changes a setting of the config, all of which lie in sections."""
    return "." in override.partition("=")[0]


def _list(spec: Spec, *, json: bool) -> int:
    rows = [(name, NEEDS[task.needs], task.help) for name, task in spec.every_task.items()]
    if json:
        tasks = [{"name": name, "of": of, "help": help} for name, of, help in rows]
        show_json({"project": spec.name, "tasks": tasks})
    elif rows:
        show_table(("task", "of", ""), rows)
    else:
        say(f"the project {spec.name!r} has no tasks")
    return codes.DONE
