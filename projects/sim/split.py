"""Which windows train and which validate, so that no frame, and no frame that a label was made from, is in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.basics.errors import DataError
from engines.training.holdout import hold_out
from projects.sim.config import SimData
from projects.sim.drives import Drive
from projects.sim.labels import ABSENT, LABELS

Rows = NDArray[np.int64]
BLOCK_SECONDS, EVERY = 2.0, 5
"""Every fifth block of this length validates where drives are cut."""
ENOUGH_DRIVES = 5
"""From which number on whole drives are held out."""
GAP = 5.0
"""Times the usual step: a window does not go over a longer one."""


@dataclass(frozen=True)
class Windows:
    """Windows by the row of their last frame, in drives laid end to end.

    train, validation: (n,) rows. groups: of each validation window the recording it is from, for resampling: its
    drive, or its block where drives are cut. how: a sentence.
    """

    train: Rows
    validation: Rows
    groups: Rows
    how: str


def split_windows(drives: Sequence[Drive], frames: int, cfg: SimData) -> Windows:
    """The windows of `frames` frames that have a label. Raises `DataError` where either part would be empty."""
    by_drive = cfg.split == "logs" or (cfg.split == "auto" and len(drives) >= ENOUGH_DRIVES)
    windows = _by_drive(drives, frames, cfg) if by_drive else _by_blocks(drives, frames)
    for name, part in (("training", windows.train), ("validation", windows.validation)):
        if not len(part):
            why = "record more." if by_drive else _advice(drives, frames)
            raise DataError(f"{cfg.path}: no window of {frames} frames with a label is left for {name}; {why}")
    return windows


def _advice(drives: Sequence[Drive], frames: int) -> str:
    """What helps where drives that are cut leave nothing: shorter windows where there is no room for these."""
    drive = max(drives, key=lambda drive: drive.rate)
    in_block, between = (int(seconds * drive.rate + 1e-6) for seconds in (BLOCK_SECONDS, (EVERY - 1) * BLOCK_SECONDS))
    horizon = drive.about.horizon
    most = min(in_block, (between - 2 * horizon) // 3)  # a window and its guard on both sides lie between two blocks
    if frames <= most:
        return "record more."
    others = f"record {ENOUGH_DRIVES} drives, of which whole ones validate."
    if most < 1:
        return (
            f"at {drive.rate:.3g} frames per second {between} lie between the {BLOCK_SECONDS:g} s that validate, and "
            f"labels look {horizon} ahead; parse the log with a smaller horizon (--set horizon=), or {others}"
        )
    return (
        f"at {drive.rate:.3g} frames per second the {BLOCK_SECONDS:g} s that validate hold {in_block}, and {between} "
        f"lie between them; set model.frames to {most} or less, or {others}"
    )


def usable(drive: Drive, frames: int) -> Rows:
    """The rows that may end a window: enough frames before them, no gap among these, and a label."""
    steps = np.diff(drive.times)
    gaps = np.concatenate([[0], np.cumsum(steps > GAP * np.median(steps))])
    ends = np.arange(frames - 1, len(drive))
    whole = gaps[ends] == gaps[ends - frames + 1]
    kept: Rows = ends[whole & (drive.labels[ends] != ABSENT).any(axis=1)]
    return kept


def _offsets(drives: Sequence[Drive]) -> Rows:
    return np.concatenate([[0], np.cumsum([len(drive) for drive in drives])])


def _by_drive(drives: Sequence[Drive], frames: int, cfg: SimData) -> Windows:
    names = [drive.name for drive in drives]
    if len(names) < 2:
        raise DataError(f"{cfg.path}: holds one drive, expected two or more for data.split logs; choose blocks.")
    held_out = hold_out(Path(cfg.path), names, "drive", fraction=cfg.val_fraction, seed=cfg.split_seed)
    ends = [usable(drive, frames) + offset for drive, offset in zip(drives, _offsets(drives)[:-1], strict=True)]
    return Windows(
        train=np.concatenate([ends[place] for place in held_out.train]),
        validation=np.concatenate([ends[place] for place in held_out.validation]),
        groups=np.concatenate([np.full(len(ends[place]), place) for place in held_out.validation]),
        how=f"validated on whole drives: {', '.join(names[place] for place in held_out.validation)}",
    )


def _by_blocks(drives: Sequence[Drive], frames: int) -> Windows:
    """With the first block that leaves the most classes on both sides: single drives have rare ones."""
    choices = [_blocks(drives, frames, first) for first in range(EVERY)]
    labels = np.concatenate([drive.labels for drive in drives])
    return max(choices, key=lambda windows: _shared_classes(labels, windows))


def _shared_classes(labels: NDArray[np.int8], windows: Windows) -> tuple[int, int]:
    """How many classes have windows on both sides, and how many train; for a choice without validation none."""
    if not len(windows.validation) or not len(windows.train):
        return -1, 0
    shared = sum(
        len(np.intersect1d(labels[windows.train, task], labels[windows.validation, task]))
        for task in range(len(LABELS))
    )
    return shared, len(windows.train)


def _blocks(drives: Sequence[Drive], frames: int, first: int) -> Windows:
    train, validation, groups = [], [], []
    for place, (drive, offset) in enumerate(zip(drives, _offsets(drives)[:-1], strict=True)):
        block = ((drive.times - drive.times[0]) // BLOCK_SECONDS).astype(np.int64)
        held_out = block % EVERY == first
        ends = usable(drive, frames)
        begins = ends - frames + 1
        inside = held_out[ends] & (block[begins] == block[ends])
        guard = frames + drive.about.horizon  # and the frames that its label was made from
        near = np.convolve(held_out, np.ones(2 * guard + 1), "same")[: len(drive)] > 0
        touched = np.cumsum(np.concatenate([[0], near]))
        stops = np.minimum(ends + 1, len(drive))
        free = touched[stops] == touched[begins]
        train.append(ends[free] + offset)
        validation.append(ends[inside] + offset)
        groups.append(place * 10**6 + block[ends[inside]])
    every = f"validated on every fifth {BLOCK_SECONDS:g} s from {first * BLOCK_SECONDS:g} s on"
    return Windows(
        np.concatenate(train), np.concatenate(validation), np.concatenate(groups),
        f"{every}, {frames} frames and the labels' horizon kept free on both sides",
    )  # fmt: skip


def support(labels: NDArray[Any]) -> dict[str, dict[str, int]]:
    """How many of the windows with `labels: (n, 3)` are of each class, by task and name."""
    counts = {}
    for place, (task, names) in enumerate(LABELS.items()):
        found = np.bincount(labels[labels[:, place] != ABSENT, place], minlength=len(names))
        counts[task] = dict(zip(names, found.tolist(), strict=True))
    return counts
