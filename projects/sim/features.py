"""Features of every frame of a drive, made once and kept, by the encoder and the drive's content.

`cockpit task CONFIG cache` makes them before a training asks for them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import nn

from engines.basics import npz
from engines.basics.errors import DataError
from engines.basics.files import make_directory, replace_with
from engines.tasks import TaskContext
from engines.training.precision import choose_device
from projects.sim.config import SimConfig
from projects.sim.drives import Bytes, Drive, Floats, drive_paths, read_drive
from projects.sim.opened import said_of_models
from projects.sim.vision import as_input, encoded, encoder_digest, open_vision

CHUNK = 32
"""Frames from one report of progress to the next."""
Tick = Callable[[int, int], None]
"""Is given how many frames of a drive are done, and of how many."""


class FeatureStore:
    """Features from the cache, or made and put there.

    Args:
        encoder: frozen, with its width as `dv`. device: where it works.
    """

    def __init__(self, encoder: Any, device: torch.device) -> None:
        self._encoder: nn.Module = encoder.to(device)
        self._device = device
        self.dv = int(encoder.dv)
        self.folder = cache_folder() / encoder_digest(encoder)[:32]

    def path(self, drive_file: Path) -> Path:
        """Where the features of a drive are kept."""
        with drive_file.open("rb") as content:
            return self.folder / f"{hashlib.file_digest(content, 'sha256').hexdigest()[:32]}.npz"

    def features(self, drive: Drive, drive_file: Path, tick: Tick) -> Floats:
        """Of every frame: (N, dv). Raises `DataError` for a damaged cache, and what `tick` raises."""
        assert drive.frames is not None
        path = self.path(drive_file)
        if path.is_file():
            return _read(path, (len(drive), self.dv))
        features = encode(self._encoder, drive.frames, self._device, tick)
        try:
            make_directory(path.parent)
            replace_with(path, lambda file: _write(file, features))
        except OSError as error:  # read-only or full: the next start makes them again, no more
            print(f"{path}: features cannot be kept ({error.strerror or error})", flush=True)
        return features


def cache_folder() -> Path:
    """Where features are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cockpit" / "features"


def encode(encoder: nn.Module, frames: Bytes, device: torch.device, tick: Tick) -> Floats:
    """The features of `frames: (N, H, W, 3)`: (N, dv)."""
    made = []
    with torch.inference_mode():
        for first in range(0, len(frames), CHUNK):
            tick(first, len(frames))
            made.append(encoded(encoder, as_input(frames[first : first + CHUNK]).to(device)).float().cpu().numpy())
    tick(len(frames), len(frames))
    return np.concatenate(made)


def _write(file: IO[bytes], features: Floats) -> None:
    np.savez(file, allow_pickle=False, features=features)


def _read(path: Path, shape: tuple[int, int]) -> Floats:
    try:
        features: Floats = npz.arrays_in(path)["features"]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path}: kept features are damaged ({error}); delete the file, they are made again.") from None
    if features.shape != shape or features.dtype != np.float32 or not np.isfinite(features).all():
        raise DataError(
            f"{path}: kept features are {features.dtype} {features.shape}, expected finite float32 {shape}; "
            "delete the file, they are made again."
        )
    return features


def cache(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """`cockpit task CONFIG cache`: encode the drives of a config that have not been; a stop keeps what is whole.

    arguments: config (a checked config as a mapping, whose `launch.device` encodes). Raises `DataError` for bad drives,
    `UserError` for a bad encoder or device.
    """
    cfg = SimConfig.model_validate(arguments["config"])
    device = choose_device(cfg.launch.device)
    with said_of_models():
        store = FeatureStore(open_vision(cfg.model.vision), device)
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
