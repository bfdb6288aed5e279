"""Which sessions train, which validate, and which are kept for the test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engines.basics.errors import DataError
from engines.training.holdout import hold_out
from projects.controls.config import ControlsData
from projects.controls.editions import NEWEST, gap
from projects.controls.layout import WINDOW
from projects.controls.recordings import Recording, read_folder

_NUMBERED = re.compile(r"(.*)_([0-9]+)")
"""How the importers name the pieces of a log: `log_0`, `log_1`, …"""


@dataclass(frozen=True)
class Parts:
    """Sessions by what they are for. shortened: pieces that were, at a border to a piece that is held out."""

    train: list[Recording]
    validation: list[Recording]
    test: list[Recording]
    shortened: int = 0


def read_split(settings: ControlsData) -> tuple[list[Recording], list[Recording]]:
    """The training and validation sessions of `settings.path`, as `read_parts`."""
    parts = read_parts(settings)
    return parts.train, parts.validation


def read_parts(settings: ControlsData, edition: int = NEWEST) -> Parts:
    """The sessions of `settings.path`. Raises `DataError` for bad data, or too few sessions."""
    path = Path(settings.path).expanduser()
    recordings = read_folder(path, settings.look_deadzone)
    found = hold_out(
        path,
        [recording.name for recording in recordings],
        "session",
        fraction=settings.val_fraction,
        seed=settings.split_seed,
        kinds=[recording.session_type for recording in recordings],
        test_fraction=settings.test_fraction,
    )
    ranks = {index: rank for rank, part in enumerate((found.train, found.validation, found.tested)) for index in part}
    kept, shortened = with_gaps(recordings, [ranks[index] for index in range(len(recordings))], gap(edition))
    train, validation, test = (
        [one for index in part if (one := kept[index]) is not None]
        for part in (found.train, found.validation, found.tested)
    )
    if not train or not validation:
        left = "train on" if validation else "validate on"
        raise DataError(
            f"{path}: the sessions are pieces of one sitting, and {WINDOW} frames beside each that is held out leave "
            f"none to {left}; record more sittings, or cut them into longer pieces."
        )
    return Parts(train, validation, test, shortened)


def with_gaps(recordings: Sequence[Recording], ranks: Sequence[int], frames: int) -> tuple[list[Recording | None], int]:
    """Leave `frames` out beside the border of two pieces of a sitting, of the one of lower rank.

    recordings: by name. ranks: 0 trains, 1 validates, 2 is for the test. None stands for a piece of which less than a
    window is left. Gives how many pieces were shortened too.
    """
    cuts = [[0, 0] for _ in recordings]
    if frames:
        by_name = {one.name: index for index, one in enumerate(recordings)}
        for index, one in enumerate(recordings):
            after = by_name.get(_next_name(one.name))
            if after is None or ranks[index] == ranks[after] or not _goes_on(one, recordings[after], frames):
                continue
            lower, end = (index, 1) if ranks[index] < ranks[after] else (after, 0)
            cuts[lower][end] = frames
    kept = [_shortened(one, *cut) if any(cut) else one for one, cut in zip(recordings, cuts, strict=True)]
    return kept, sum(any(cut) for cut in cuts)


def _next_name(name: str) -> str:
    """What the piece after the one called `name` is called, if it is a piece: the same with the next number."""
    match = _NUMBERED.fullmatch(name)
    if match is None:
        return ""
    stem, number = match.groups()
    return f"{stem}_{int(number) + 1:0{len(number)}d}"


def _goes_on(one: Recording, other: Recording, frames: int) -> bool:
    """Whether `other` begins where `one` ends, less than `frames` later."""
    if not len(one) or not len(other) or (one.fps, one.session_type) != (other.fps, other.session_type):
        return False
    return 0 < float(other.timestamps[0] - one.timestamps[-1]) * one.fps <= frames


def _shortened(one: Recording, begin: int, end: int) -> Recording | None:
    """Without so many frames at its begin and its end; None where less than a window is left."""
    kept = slice(begin, len(one) - end)
    if len(one) - begin - end < WINDOW:
        return None
    return replace(
        one,
        frames=one.frames[kept],
        controls=one.controls[kept],
        state=one.state[kept],
        timestamps=one.timestamps[kept],
    )
