"""Augmentation of whole batches: windows are cropped, warped in time and blurred by noise, all at once.

Everything is said in ages, in frames before the target: the row k rows above the newest shows the session at age
k · factor. So one factor stretches pose, state and the controls of the history alike, the target stays on a frame of
its own, and nothing of that frame's controls can come into the history while the factor is above a half.
`features.augmented_window` is the same for one window, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engines.training.draws import Share
from engines.training.windows import send
from projects.controls.config import Augmentation
from projects.controls.features import SOURCES
from projects.controls.layout import COORDINATES, HISTORY, VELOCITY_FEATURES, WINDOW

POSES = WINDOW + 1
"""Poses a window needs: one for each row, and the one before them for the first row's velocity."""


@dataclass(frozen=True)
class Draws:
    """Random numbers of a batch.

    crop: (batch, 2) in [0, 1), how much is cut at the old and at the new end. factor: (batch,) frames a row.
    noise: (batch, 31, 225) added to the coordinates of the poses.
    """

    crop: Tensor
    factor: Tensor
    noise: Tensor


def random_rows(
    rng: np.random.Generator, shape: tuple[int, ...], share: Share | None = None
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """From 0 to 1, `shape: (windows, …)`; of a `share` of a batch, its rows of what is drawn for the whole batch."""
    if share is None:
        return rng.random(shape, np.float32)
    rows: np.ndarray[Any, np.dtype[np.float32]] = share.of(lambda size: rng.random((size, *shape[1:]), np.float32))
    return rows


def draw(
    settings: Augmentation, batch: int, device: torch.device, rng: np.random.Generator, share: Share | None = None
) -> Draws:
    """Draws for `batch` windows. The noise is made on the device, by a generator that `rng` seeds: no transfer."""
    uniform = send(torch.from_numpy(random_rows(rng, (batch, 3), share)), device)
    generator = torch.Generator(device).manual_seed(int(rng.integers(2**63)))
    noise = torch.empty(share.size if share else batch, POSES, COORDINATES, device=device)
    if settings.noise:
        noise.normal_(0, settings.noise, generator=generator)
    else:
        noise.zero_()
    if share is not None:
        noise = noise[share.start : share.stop]
    return Draws(uniform[:, :2], 1 + settings.warp * (2 * uniform[:, 2] - 1), noise)


@dataclass(frozen=True)
class Shown:
    """The rows of a source that augmented windows show; row 0, which is zeros, for what lies before a session.

    last: (batch,) target row. mask: (batch, 30) False where a row is padding. nearest: (batch, 30) for what is not
    interpolated. older, newer: (batch, 31) rows around each pose. weight: (batch, 31) of the newer one.
    moved: (batch, 30) whether there was a pose before. past: (batch, 34) controls of the history.
    """

    last: Tensor
    mask: Tensor
    nearest: Tensor
    older: Tensor
    newer: Tensor
    weight: Tensor
    moved: Tensor
    past: Tensor


def shown_rows(start: Tensor, first: Tensor, draws: Draws, crop: float) -> Shown:
    """Rows for windows that begin at row `start: (batch,)` in sessions that begin at row `first: (batch,)`.

    A window keeps its own frames less what is cropped; rows for which there are none left are padding, on the left.
    """
    begin, end = torch.maximum(start, first), start + (WINDOW - 1)
    most = ((end - begin + 1) * crop).floor()
    cut = (draws.crop * (most + 1)[:, None]).floor().long()
    begin, last = begin + cut[:, 0], end - cut[:, 1]
    age = torch.arange(SOURCES, -1, -1, device=start.device) * draws.factor[:, None]
    kept, known = (last - begin)[:, None], (last - first)[:, None]

    def rows(age: Tensor) -> Tensor:
        whole = age.long()
        return torch.where(whole <= known, last[:, None] - whole, 0)

    pose = age[:, -POSES:]
    nearest = rows(age.round())
    return Shown(
        last=last,
        mask=age[:, HISTORY:] <= kept,
        nearest=nearest[:, HISTORY:],
        older=rows(pose.ceil()),
        newer=rows(pose.floor()),
        weight=pose.ceil() - pose,
        moved=pose[:, :-1] <= known,
        past=nearest[:, :SOURCES],
    )


def write_frames(features: Tensor, base: Tensor, shown: Shown, noise: Tensor) -> None:
    """Write all but the history into `features: (batch, 30, 671 or more)` from the rows of `base: (rows, 531)`.

    Coordinates are interpolated; flags, visibilities and state come from the nearest frame. The velocity is that of the
    noisy coordinates: a detector's jitter is in both at once, so one without it would be trusted more than it deserves.
    """
    others = features[..., : base.shape[1]].flatten(0, 1)
    torch.index_select(base, 0, shown.nearest.flatten(), out=others)
    moving = base[:, :COORDINATES]
    older, pose = (moving.index_select(0, rows.flatten()).view(noise.shape) for rows in (shown.older, shown.newer))
    pose.sub_(older).mul_(shown.weight[..., None]).add_(older).add_(noise)
    features[..., :COORDINATES] = pose[:, 1:]
    velocity = torch.sub(pose[:, 1:], pose[:, :-1], out=features[..., VELOCITY_FEATURES])
    velocity.mul_(shown.moved[..., None])
