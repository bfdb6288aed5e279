"""Which sessions train and which validate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engines.basics.errors import DataError
from projects.controls.config import ControlsData
from projects.controls.recordings import Recording, read_folder


def read_split(settings: ControlsData) -> tuple[list[Recording], list[Recording]]:
    """The training and validation sessions of `settings.path`. Raises `DataError` for bad data or a single session."""
    path = Path(settings.path).expanduser()
    recordings = read_folder(path)
    if len(recordings) < 2:
        raise DataError(
            f"{path}: holds one session only ({recordings[0].name}); expected at least two, since whole sessions "
            "are held out for validation: record another one."
        )
    types = [recording.session_type for recording in recordings]
    held_out = set(validation_sessions(types, settings.val_fraction, settings.split_seed))
    train = [recording for k, recording in enumerate(recordings) if k not in held_out]
    return train, [recordings[k] for k in sorted(held_out)]


def validation_sessions(types: Sequence[str], fraction: float, seed: int) -> list[int]:
    """Indices of the sessions that validate: `fraction` of all, at least one, never all, spread evenly over types.

    Session k of c of its type, in shuffled order, stands at (k + ½)/c; those that stand first are taken, so each
    type gives its share and a type of one session is kept for training while others can give.
    """
    rng = np.random.default_rng(seed)
    places = np.empty(len(types))
    for name in sorted(set(types)):
        of_type = rng.permutation([k for k, other in enumerate(types) if other == name])
        places[of_type] = (np.arange(len(of_type)) + 0.5) / len(of_type)
    order = np.lexsort([rng.random(len(types)), places])
    wanted = min(max(1, round(fraction * len(types))), len(types) - 1)
    return sorted(order[:wanted].tolist())
