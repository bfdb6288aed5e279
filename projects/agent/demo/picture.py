"""What is seen of the arena: latents of four channels on three cells by three, and where things are in such latents.

The camera is locked on the player, who is in the middle, and sees all of the world once: it has no walls. hunter,
gold, taken: a smooth blob at the place, as high as the thing is bright (gold by its amount, the mark of taken gold
fading). life, the same in all cells: what is left of it, from 1 down; it goes below 0 with a death, on to about -1, and
up again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CELLS = 3
SIZE = float(CELLS)
MIDDLE = SIZE / 2
CHANNELS = ("hunter", "gold", "taken", "life")
SHARP = 1.0
"""A blob is exp(SHARP · (cos x + cos y - 2)), with one turn of x and y for the width of the world."""
FINE = 60
"""Places along each side that `locate` tries."""
_CENTRES = np.arange(CELLS) + 0.5


def render(things: Sequence[tuple[Floats, Floats]], life: Floats) -> NDArray[np.float32]:
    """Latents (E, 4, 3, 3) of places in view (E, 2) with brightness (E,), by the order of the channels, and life (E,).

    Places are in cells from the lower left corner of what is seen; row 0 is the top (largest y), as in a picture.
    """
    latents = np.empty((len(life), len(CHANNELS), CELLS, CELLS), np.float32)
    for channel, (place, bright) in enumerate(things):
        latents[:, channel] = bright[:, None, None] * _blobs(place)
    latents[:, -1] = life[:, None, None]
    return latents


def locate(latents: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Where each thing is in latents (E, 4, 3, 3), and how bright: (E, 3, 2) and (E, 3).

    The place and height whose blob fits a channel with least square error, on a grid of SIZE / 60.
    """
    grid = (np.arange(FINE) + 0.5) * (SIZE / FINE)
    places = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    blobs = _blobs(places).reshape(len(places), -1)
    energy = (blobs**2).sum(axis=1)
    seen = latents[:, :-1].reshape(len(latents), len(CHANNELS) - 1, -1).astype(np.float64)
    fit = np.maximum(seen @ blobs.T, 0.0)
    best = (fit**2 / energy).argmax(axis=2)
    return places[best], np.take_along_axis(fit, best[..., None], axis=2)[..., 0] / energy[best]


def _blobs(place: Floats) -> Floats:
    """Blobs of height 1 at places (n, 2): (n, rows, columns)."""
    turn = 2 * np.pi / SIZE
    across = np.exp(SHARP * (np.cos(turn * (_CENTRES - place[:, :1])) - 1))
    up = np.exp(SHARP * (np.cos(turn * (_CENTRES[::-1] - place[:, 1:])) - 1))
    blobs: Floats = up[:, :, None] * across[:, None, :]
    return blobs
