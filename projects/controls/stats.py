"""What is in a folder of recordings, and how far a model could get with them, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.training.project import Table
from projects.controls.baselines import Baselines
from projects.controls.config import ControlsData
from projects.controls.demo.task import CEILING
from projects.controls.layout import ACTION, CONTROL_NAMES, HOTBAR, INV
from projects.controls.masks import frame_masks
from projects.controls.metrics import LEAST_SUPPORT
from projects.controls.recordings import Recording
from projects.controls.report import comparison_table
from projects.controls.split import read_split
from projects.controls.state_leaks import leaks_table, state_leaks

Counts = NDArray[np.int64]
_ROWS = (
    *(CONTROL_NAMES[control] for control in ACTION), "look",
    *(CONTROL_NAMES[control] for control in HOTBAR), "cursor",
    *(CONTROL_NAMES[control] for control in INV),
)  # fmt: skip


def tables(path: str) -> dict[str, Table]:
    """`sessions`, `controls`, `state columns` and `baselines` of the recordings in the folder `path`.

    The baselines are trained and scored on the default split. Raises `DataError` for bad recordings.
    """
    train, validation = read_split(ControlsData(path=path))
    baselines = Baselines(train).scores(validation, Path(path).expanduser() / CEILING)
    return {
        "sessions": _sessions(train, validation),
        "controls": _controls(train, validation),
        "state columns": leaks_table(state_leaks(train, validation)),
        "baselines": comparison_table(
            baselines, f"Trained on {len(train)} sessions, scored on the {len(validation)} that validate by default."
        ),
    }


def _sessions(train: Sequence[Recording], validation: Sequence[Recording]) -> Table:
    rows = [
        (recording.name, recording.session_type, part, len(recording), round(len(recording) / recording.fps / 60, 2))
        for part, recordings in (("train", train), ("validation", validation))
        for recording in recordings
    ]
    everything = [*train, *validation]
    frames = sum(map(len, everything))
    minutes = round(sum(len(recording) / recording.fps for recording in everything) / 60, 2)
    made = sum(recording.synthesised_pose for recording in everything)
    return Table(
        columns=("session", "type", "part", "frames", "minutes"),
        rows=(*sorted(rows), (f"{len(rows)} sessions", f"{len({row[1] for row in rows})} types", "", frames, minutes)),
        note=f"The pose of {made} sessions is made from their controls." if made else "",
    )


def _controls(train: Sequence[Recording], validation: Sequence[Recording]) -> Table:
    """A row a control, and one each for look and cursor."""
    training, held_out = _support(train), _support(validation)
    on, judged, presses = (mine + theirs for mine, theirs in zip(training, held_out, strict=True))
    share = np.round(on / np.maximum(judged, 1), 5)
    columns = (
        _ROWS, on.tolist(), share.tolist(), presses.tolist(), training.on.tolist(), held_out.on.tolist(),
        ["yes" if count >= LEAST_SUPPORT else "no" for count in held_out.on.tolist()],
    )  # fmt: skip
    return Table(
        columns=("control", "frames on", "share", "presses", "in train", "in validation", "counts"),
        rows=tuple(zip(*columns, strict=True)),
        note="Share: of the frames where it is judged. Look is on beyond its dead zone, the cursor while a screen is. "
        f"Counts: has {LEAST_SUPPORT} frames or more in validation; from fewer a score may be chance, and the F1 of an "
        "on-off control counts in no mean.",
    )


class _Support(NamedTuple):
    """Frames where a control is on, frames where it is judged, and times it goes on: (26,) int64 each, as `_ROWS`."""

    on: Counts
    judged: Counts
    presses: Counts


def _support(recordings: Sequence[Recording]) -> _Support:
    on, judged, presses = np.zeros((3, len(_ROWS)), np.int64)
    for recording in recordings:
        masks = frame_masks(recording.controls, recording.state, recording.look_deadzone)
        mask = np.column_stack([
            masks.action, masks.gameplay, *[masks.gameplay] * len(HOTBAR), masks.gameplay | masks.screen_open,
            *[masks.screen_open] * len(INV),
        ])  # fmt: skip
        pressed = recording.controls > 0.5
        state = np.column_stack([
            pressed[:, ACTION], masks.look_active, pressed[:, HOTBAR], masks.screen_open, pressed[:, INV],
        ])  # fmt: skip
        state &= mask
        on += state.sum(axis=0)
        judged += mask.sum(axis=0)
        presses += state[0] + (state[1:] & ~state[:-1]).sum(axis=0)
    return _Support(on, judged, presses)
