"""The stages of a run by name or number, and where the best checkpoint of each lies."""

from __future__ import annotations

from pathlib import Path

from engines.basics.errors import DataError, UserError, nearest
from engines.contract.rundir import RunDirectory
from engines.runs.saved import read_saved


def best_of_stage(run: RunDirectory, wanted: str) -> tuple[int, Path]:
    """Number (from 1) of the stage that `wanted` names, and its best checkpoint.

    Raises `UserError` for a stage that the run does not have, `DataError` where it has kept no best of it.
    """
    from engines.contract.config import load_config

    names = [stage.name for stage in load_config(run.recorded_config).settings.training.stages]
    numbers = {name: str(number) for number, name in enumerate(names, 1)}
    number = numbers.get(wanted, wanted)
    if number not in numbers.values():
        known = ", ".join(f"{number} {name}" for name, number in numbers.items())
        raise UserError(
            f"{run.info.id} has no stage {wanted!r}{nearest(wanted, names)}; its stages are {known}."
            if names
            else f"{run.info.id} has no stages; omit --stage."
        )
    place = run.stage_best(int(number))
    if place.is_file():
        return int(number), place
    if run.best.is_file() and read_saved(run.best).stage == int(number) - 1:  # the stage that is running, or was last
        return int(number), run.best
    raise DataError(f"{run.info.id} has no best checkpoint of stage {number}: it has no scored epoch yet.")
