"""The 671 features of a frame and the windows made of them: readable numpy, the reference for the fast batches.

A window is 30 consecutive feature rows; its target is the control of its last frame. A session of 30 frames or more
gives only full windows, one for each frame from the 30th on; a shorter one gives a single window, padded on the left
so that the newest frame is still the last row.
"""

from __future__ import annotations

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
