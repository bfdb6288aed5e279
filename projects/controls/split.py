"""Which sessions train and which validate."""

from __future__ import annotations

from pathlib import Path

from engines.training.holdout import hold_out
from projects.controls.config import ControlsData
from projects.controls.recordings import Recording, read_folder


def read_split(settings: ControlsData) -> tuple[list[Recording], list[Recording]]:
    """The training and validation sessions of `settings.path`. Raises `DataError` for bad data or a single session."""
    path = Path(settings.path).expanduser()
    recordings = read_folder(path)
    found = hold_out(
        path,
        [recording.name for recording in recordings],
        "session",
        fraction=settings.val_fraction,
        seed=settings.split_seed,
        kinds=[recording.session_type for recording in recordings],
    )
    return [recordings[k] for k in found.train], [recordings[k] for k in found.validation]
