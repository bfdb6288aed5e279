"""Latents as something to look at: the arena's things at their places, small pictures, or a line of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.contract.scenes import Box, Image, Kind, Line, Text
from projects.agent.demo.picture import SIZE, locate
from projects.agent.opened import Opened

GAP = 0.06
"""Between two pictures of width 1."""
THINGS: tuple[tuple[str, Kind, float], ...] = (
    ("hunter", "bad", 0.07), ("gold", "good", 0.035), ("taken", "good", 0.08),
)  # fmt: skip
"""In the order of the channels: name, colour, half of the side of its box."""
PLAYER, BAR_ABOVE, BAR = 0.05, 0.09, 0.08
"""Half of the side of the player's box, how far above its middle its bar of life is, and half of the bar."""
VISIBLE = 0.15
"""Brightness from which on a thing is drawn."""
SPREAD = 2.5
"""Deviations that a picture's darkest and brightest colour are from the mean."""


def draw(opened: Opened, latents: NDArray[np.float32], left: float, kind: Kind) -> list[Any]:
    """One frame's latents (C, H, W) in a square of side 1 from (left, 0) on; `kind` colours frame and player."""
    items: list[Any] = [Box(left, 0.0, 1.0, 1.0, kind)]
    if opened.arena:
        return items + _arena(latents, left, kind)
    if latents[0].size == 1:
        return items + _numbers(opened.standardised(latents)[:, 0, 0], left, kind)
    return [_picture(opened.standardised(latents), left), *items]


def _arena(latents: NDArray[np.float32], left: float, kind: Kind) -> list[Any]:
    places, bright = locate(latents[None])
    items: list[Any] = []
    for (name, colour, half), (x, y), level in zip(THINGS, places[0] / SIZE, bright[0], strict=True):
        if level < VISIBLE:
            continue
        x, y = left + float(np.clip(x, half, 1 - half)), float(np.clip(y, half, 1 - half))
        items.append(Box(round(x - half, 4), round(y - half, 4), 2 * half, 2 * half, colour, filled=name != "taken"))
    return items + _player(float(np.clip(latents[-1].mean(), -1, 1)), left + 0.5, kind)


def _player(life: float, x: float, kind: Kind) -> list[Any]:
    """The player in the middle with its life above it, red from a half down."""
    if life < 0:
        return [Text(x, 0.5, "dead", "bad")]
    start, y = x - BAR, 0.5 + BAR_ABOVE
    end, ends = round(start + 2 * BAR * life, 4), round(x + BAR, 4)
    return [
        Box(round(x - PLAYER, 4), 0.5 - PLAYER, 2 * PLAYER, 2 * PLAYER, kind, filled=True),
        Line([(round(start, 4), y), (ends, y)], "faint"),
        Line([(round(start, 4), y), (end, y)], "good" if life > 0.5 else "bad"),
    ]


def _numbers(values: NDArray[np.float32], left: float, kind: Kind) -> list[Any]:
    heights = np.clip(0.5 + values / (2 * SPREAD), 0, 1)
    across = (np.arange(len(values)) + 0.5) / len(values)
    points = [(round(left + float(x), 4), round(float(y), 4)) for x, y in zip(across, heights, strict=True)]
    return [Line([(left, 0.5), (left + 1, 0.5)], "faint"), Line(points, kind)]


def _picture(values: NDArray[np.float32], left: float) -> Image:
    """The first three channels as red, green and blue."""
    colours = np.zeros((3, *values.shape[1:]))
    colours[: len(values[:3])] = values[:3]
    pixels = (np.clip(0.5 + colours / (2 * SPREAD), 0, 1) * 255).astype(np.uint8).transpose(1, 2, 0)
    return Image(left, 0.0, 1.0, 1.0, pixels.shape[1], pixels.tobytes())
