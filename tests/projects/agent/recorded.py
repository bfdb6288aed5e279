"""Folders of recorded games with values that tests choose."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from projects.agent.features import Features, write_features
from projects.agent.latents import write_latents
from projects.agent.layout import NONE
from projects.agent.recordings import FEATURES, FILE, LATENTS

SHAPE = (2, 1, 3)
"""(C, H, W) of `latents_of`."""


def features_of(number: Sequence[int], name: str = "game", **columns: Any) -> Features:
    """Features of frames with these numbers: still, nothing pressed, no gold, alive, but for what `columns` say."""
    count = len(number)
    plain: dict[str, Any] = {
        "movement": np.full(count, NONE, np.int8),
        "abilities": np.zeros((count, 8), bool),
        "gold": np.zeros(count),
        "bar": np.full((count, 2), 50.0),
    }
    return Features(name, np.asarray(number, np.int64), **(plain | columns))


def latents_of(number: Sequence[int]) -> NDArray[np.float32]:
    """Latents whose first value is the frame's number, and whose others rise from it by quarters: (n, 2, 1, 3)."""
    rows = np.asarray(number)[:, None] + np.arange(6) / 4
    return rows.astype(np.float32).reshape(-1, *SHAPE)


def write_game(folder: Path, features: Features, number: Sequence[int], latents: NDArray[np.float32]) -> None:
    """A game of `folder`, whose latents are of the frames `number`."""
    for path in (folder / FEATURES / features.name, folder / LATENTS):
        path.mkdir(parents=True, exist_ok=True)
    angle = np.deg2rad(20.0 * features.movement)
    write_features(
        folder / FEATURES / features.name / FILE, features, np.column_stack([np.cos(angle), np.sin(angle)]), side="red"
    )
    write_latents(folder / LATENTS / f"{features.name}.npz", latents, np.asarray(number))
