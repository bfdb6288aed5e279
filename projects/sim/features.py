"""Features of every frame of a drive, made once and kept, by the encoder's weights and the drive's content."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import nn

from engines.basics.errors import DataError
from engines.basics.files import make_directory, replace_with
from projects.sim.drives import Bytes, Drive, Floats
from projects.sim.vision import as_input, encoder_digest

CHUNK = 32
"""Frames that are encoded together."""
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
            made.append(encoder(as_input(frames[first : first + CHUNK]).to(device)).float().cpu().numpy())
    tick(len(frames), len(frames))
    return np.concatenate(made)


def _write(file: IO[bytes], features: Floats) -> None:
    np.savez(file, allow_pickle=False, features=features)


def _read(path: Path, shape: tuple[int, int]) -> Floats:
    try:
        with np.load(path, allow_pickle=False) as content:
            features: Floats = content["features"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: kept features are damaged ({error}); delete the file, they are made again.") from None
    if features.shape != shape or features.dtype != np.float32 or not np.isfinite(features).all():
        raise DataError(
            f"{path}: kept features are {features.dtype} {features.shape}, expected finite float32 {shape}; "
            "delete the file, they are made again."
        )
    return features
