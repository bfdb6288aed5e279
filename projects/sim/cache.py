"""`cockpit task CONFIG cache`: the features of every frame, before a training asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from engines.tasks import TaskContext
from projects.sim.config import SimConfig
from projects.sim.drives import drive_paths, read_drive
from projects.sim.features import FeatureStore
from projects.sim.opened import said_of_models
from projects.sim.vision import open_vision


def cache(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Encode the drives of a config that have not been; a stop keeps what is whole.

    arguments: config (a checked config as a mapping). Raises `DataError` for bad drives, `UserError` for a bad encoder.
    """
    cfg = SimConfig.model_validate(arguments["config"])
    with said_of_models():
        store = FeatureStore(open_vision(cfg.model.vision), torch.device("cpu"))
    paths = drive_paths(Path(cfg.data.path))
    for number, path in enumerate(paths, 1):
        drive = read_drive(path)
        if drive.frames is None:
            context.log(f"{drive.name}: has no frames")
            continue

        def tick(done: int, total: int, number: int = number) -> None:
            context.progress(done, total, f"frames of drive {number} of {len(paths)}")

        store.features(drive, path, tick)
        context.log(f"{drive.name}: {len(drive)} frames in {store.path(path)}")
