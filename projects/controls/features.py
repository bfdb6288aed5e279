"""The 671 features of a frame and the windows made of them: readable numpy, the reference for the fast batches.

A window is 30 consecutive feature rows; its target is the control of its last frame. A session of 30 frames or more
gives only full windows, one for each frame from the 30th on; a shorter one gives a single window, padded on the left
so that the newest frame is still the last row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from projects.controls.layout import (
    CONTROL_SIZE,
    COORDINATES,
    DEFAULT_STATE,
    FEATURE_SIZE,
    HISTORY,
    LEAKING_STATE,
    WINDOW,
)
from projects.controls.masks import Bools, Floats
from projects.controls.recordings import Recording

SOURCES = WINDOW + HISTORY - 1
"""Past control frames that a window shows: row i, slot j shows source i + j; source k is frame last - 34 + k."""


def target_frames(length: int) -> range:
    """The frames of a session of `length` frames that are the target of a window."""
    return range(WINDOW - 1, length) if length >= WINDOW else range(length - 1, length)


def velocity(frames: Floats) -> Floats:
    """Coordinates minus those of the frame before, the first frame 0: (frames, 225)."""
    moved = np.zeros((len(frames), COORDINATES), np.float32)
    np.subtract(frames[1:, :COORDINATES], frames[:-1, :COORDINATES], out=moved[1:])
    return moved


def lagged_state(state: Floats) -> Floats:
    """Game state as a model may see it: what gives away the same frame's controls comes from the frame before.

    The first frame takes those columns from the default state. (frames, 46).
    """
    lagged = state.copy()
    lagged[1:, LEAKING_STATE] = state[:-1, LEAKING_STATE]
    lagged[:1, LEAKING_STATE] = DEFAULT_STATE[list(LEAKING_STATE)]
    return lagged


def history(controls: Floats) -> Floats:
    """Controls of the five frames before, oldest first, zeros before the start: (frames, 140)."""
    padded = np.concatenate([np.zeros((HISTORY, CONTROL_SIZE), np.float32), controls])
    return np.concatenate([padded[slot : slot + len(controls)] for slot in range(HISTORY)], axis=1)


def frame_features(recording: Recording) -> Floats:
    """Every feature row of a session: (frames, 671)."""
    parts = (recording.frames, velocity(recording.frames), lagged_state(recording.state), history(recording.controls))
    return np.concatenate(parts, axis=1)


def window_features(recording: Recording, last: int, hidden: Bools | None = None) -> tuple[Floats, NDArray[np.bool_]]:
    """One window, row by row: features (30, 671) and its mask (30,), False where padded.

    `hidden: (34,)` names the source frames whose every copy in the history is blanked; none where absent.
    """
    rows = frame_features(recording)
    features = np.zeros((WINDOW, FEATURE_SIZE), np.float32)
    mask = np.zeros(WINDOW, np.bool_)
    for i, frame in enumerate(range(last - WINDOW + 1, last + 1)):
        if frame < 0:
            continue
        features[i] = rows[frame]
        mask[i] = True
        for slot in range(HISTORY):
            if hidden is not None and hidden[i + slot]:
                start = FEATURE_SIZE - (HISTORY - slot) * CONTROL_SIZE
                features[i, start : start + CONTROL_SIZE] = 0
    return features, mask


class Warped(NamedTuple):
    """An augmented window: features (30, 671), mask (30,), and the frame that is its target now."""

    features: Floats
    mask: NDArray[np.bool_]
    target: int


def augmented_window(
    recording: Recording,
    last: int,
    crop: tuple[int, int],
    factor: np.float32,
    noise: Floats,
    hidden: Bools | None = None,
) -> Warped:
    """The window that ends at frame `last`, augmented, row by row.

    crop: frames cut at the old and at the new end. factor: frames a row. noise: (31, 225), added to the coordinates of
    the pose before the first row and of the 30 rows. hidden: as in `window_features`.
    """
    begin, target = max(last - WINDOW + 1, 0) + crop[0], last - crop[1]
    state, coordinates = lagged_state(recording.state), recording.frames[:, :COORDINATES]
    features, mask = np.zeros((WINDOW, FEATURE_SIZE), np.float32), np.zeros(WINDOW, np.bool_)

    def age(rows: int) -> np.float32:
        """Frames before the target of what stands `rows` rows above the newest."""
        return np.float32(rows) * factor

    def pose(rows: int) -> Floats:
        older, newer = target - int(np.ceil(age(rows))), target - int(np.floor(age(rows)))
        between = coordinates[older] + (np.ceil(age(rows)) - age(rows)) * (coordinates[newer] - coordinates[older])
        return np.asarray(between + noise[WINDOW - rows], np.float32)

    for i in range(WINDOW):
        rows = WINDOW - 1 - i
        if age(rows) > target - begin:
            continue
        mask[i] = True
        nearest = target - int(np.rint(age(rows)))
        moved = pose(rows) - pose(rows + 1) if age(rows + 1) <= target else np.zeros(COORDINATES, np.float32)
        past = []
        for slot in range(HISTORY):
            frame = target - int(np.rint(age(SOURCES - i - slot)))
            shown = frame >= 0 and (hidden is None or not hidden[i + slot])
            past.append(recording.controls[frame] if shown else np.zeros(CONTROL_SIZE, np.float32))
        others = recording.frames[nearest, COORDINATES:]
        features[i] = np.concatenate([pose(rows), others, moved, state[nearest], *past])
    return Warped(features, mask, target)
