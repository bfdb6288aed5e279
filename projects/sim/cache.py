"""`cockpit task CONFIG cache`: the features of every frame, before a training asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch

from engines.contract.config import load_config
from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from projects.sim.config import SimConfig
from projects.sim.drives import drive_paths, read_drive
from projects.sim.features import FeatureStore
from projects.sim.opened import said_of_models
from projects.sim.vision import open_vision


class _Order(msgspec.Struct):
    config: Path


def cache(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Encode the drives of a config that have not been; a stop keeps what is whole.

    arguments: config (a config file). Raises `UserError` for a bad config, `DataError` for bad drives.
    """
    cfg = load_config(as_struct(arguments, _Order).config).settings
    assert isinstance(cfg, SimConfig)
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
