"""Exporting a run: the files it delivers, made again from its best checkpoint."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from cockpit.cli.tasks import Target, carry_out
from engines.basics.errors import DataError, UserError
from engines.contract import spec as specs
from engines.runs.stages import best_of_stage
from engines.runs.store import find_training

TASK = "export"
"""A project that can export names this task in its spec; it gets a run's directory, and the stage that is named."""


def export(arguments: Namespace) -> int:
    run = find_training(arguments.run)
    info = run.info
    spec = specs.of_run(info, "nothing to export")
    if TASK not in spec.tasks:
        raise UserError(
            f"The project {info.project!r} has no export of its own; a finished run writes to {run.export}."
        )
    if not run.best.is_file():
        raise DataError(f"{info.id} has nothing to export yet: {run.best.name} is written with its first scored epoch.")
    given: dict[str, Any] = {}
    if arguments.stage:
        number, best = best_of_stage(run, arguments.stage)
        given = {"stage": number} if best != run.best else {}
    return carry_out(Target(spec, run.config, run), TASK, given, arguments.overrides)
