"""Several trainings one after another, for a table of them: each is trained, resumed, or left as it is.

A study names its runs' folders and settings; started again it skips what is over and resumes what was stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from engines.basics.errors import UserError
from engines.contract import commands
from engines.contract.config import load_config, with_recorded_environment
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.state import RunReader

POLL_SECONDS = 1.0


def check(config: Path, run: RunDirectory, settings: Sequence[str], sections: Collection[str]) -> None:
    """Raises `UserError` for settings that cannot be, or whose `sections` are not those of the run that is there."""
    loaded = with_recorded_environment(load_config(config, settings))
    wanted = loaded.settings.model_dump(include=set(sections))
    if run.config.is_file() and load_config(run.config).settings.model_dump(include=set(sections)) != wanted:
        raise UserError(f"{run.path}: was trained with other settings; name another folder, or remove this run.")


def train(config: Path, run: RunDirectory, settings: Sequence[str], final: Callable[[RunDirectory], object]) -> None:
    """Start or resume a run and stay until it has ended. Raises `UserError` where it has not come to `final`."""
    reader = RunReader(run)
    if not run.path.is_dir():
        launch.start(launch.prepare_training(config, settings, run_dir=run.path))
    elif not reader.status().live:
        launch.start(run, launch.prepare_resume(run)[0])
    try:
        while reader.status().live:
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        launch.send_stop(run, commands.Stop(attempt=max(run.attempt_numbers())))
        raise UserError(f"{run.path}: stops after this step; start the study again to go on.", exit_code=130) from None
    if not final(run):
        raise UserError(f"{run.path}: {reader.status().detail or 'has no report'}; start the study again to go on.")
