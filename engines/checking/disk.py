"""Disk that the checkpoints take, and what is free where they will lie."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from engines.basics.amounts import size
from engines.contract.settings import RunConfig
from engines.runs.store import runs_folder

CHECKPOINTS_BESIDE_KEPT = 3
"""last.pt, best.pt, and the one being written."""


def output_place(settings: RunConfig) -> Path:
    """The folder that exists already and will hold the run directory: its volume is the one that counts."""
    folder = _folder(settings)
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def occupied(settings: RunConfig) -> list[str]:
    """The fault of an output directory that is not empty, in a list; an empty list without one."""
    folder = _folder(settings)
    if settings.output.dir and folder.is_dir() and any(folder.iterdir()):
        return [f"The output directory {folder} is not empty; resume the run in it, or choose another output.dir."]
    return []


def disk_needed(settings: RunConfig, checkpoint: int, faults: list[str]) -> dict[str, Any]:
    """What checkpoints of `checkpoint` bytes take over the run and what is free, in bytes; too little is a fault."""
    place = output_place(settings)
    every = settings.output.keep_epochs
    of_stages = max(0, len(settings.training.stages) - 1)
    kept = settings.training.epochs // every if every else 0
    kept += min(settings.output.keep_best * (of_stages + 1), settings.training.epochs - kept)
    copies = CHECKPOINTS_BESIDE_KEPT + of_stages + kept
    free = shutil.disk_usage(place).free
    if copies * checkpoint > free:
        faults.append(
            f"{copies} checkpoints of {size(checkpoint)} need {size(copies * checkpoint)}, and "
            f"{size(free)} are free at {place}; free some space, or choose another output.dir or COCKPIT_RUNS."
        )
    return {
        "checkpoint": checkpoint,
        "checkpoints": copies,
        "needed": copies * checkpoint,
        "free": free,
        "path": str(place),
    }


def _folder(settings: RunConfig) -> Path:
    return Path(settings.output.dir).expanduser().absolute() if settings.output.dir else runs_folder()
