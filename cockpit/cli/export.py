"""Exporting a run: the files it delivers, made anew from its best checkpoint."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from cockpit.cli.following import start_and_attend
from engines.basics.errors import DataError, UserError
from engines.contract import spec as specs
from engines.runs import launch
from engines.runs.stages import best_of_stage
from engines.runs.store import find_training

TASK = "export"
"""A project that can export names this task in its spec; it gets a run's directory, and the stage that is named."""


def export(arguments: Namespace) -> int:
    run = find_training(arguments.run)
    info = run.info
    if TASK not in specs.of_run(info, "nothing to export").tasks:
        raise UserError(
            f"The project {info.project!r} exports nothing but what a finished run writes into {run.export}."
        )
    if not run.best.is_file():
        raise DataError(f"{info.id} has nothing to export yet: {run.best.name} is written with its first scored epoch.")
    order: dict[str, Any] = {"run": str(run.path)}
    if arguments.stage:
        number, best = best_of_stage(run, arguments.stage)
        order |= {"stage": number} if best != run.best else {}
    task = launch.prepare_task(info.project, TASK, order, title=f"export of {info.id}")
    return start_and_attend(task)
