"""The newest 30 feature rows of a stream of frames, made as they come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from projects.controls.layout import (
    CONTROL_SIZE,
    COORDINATES,
    DEFAULT_STATE,
    FEATURE_SIZE,
    FRAME_FEATURES,
    HISTORY,
    HISTORY_FEATURES,
    STATE_FEATURES,
    VELOCITY_FEATURES,
)
from projects.controls.masks import Floats


class FeatureStream:
    """Makes the feature row of each new frame from it, the frame before and the five last controls.

    The row of a frame never changes afterwards: its history is what was past then. The rows are those of
    `projects.controls.features.frame_features`.

    Args:
        lagged: state columns that are taken from the frame before.
    """

    def __init__(self, lagged: Sequence[int]) -> None:
        self._lagged = list(lagged)
        self.reset()

    def reset(self) -> None:
        """Forget everything, as before the first frame."""
        self._frame: Floats | None = None
        self._state = DEFAULT_STATE
        self._history = np.zeros((HISTORY, CONTROL_SIZE), np.float32)

    def row(self, frame: Floats, state: Floats) -> Floats:
        """The features of a new frame: `frame: (260,)` and `state: (46,)` to (671,)."""
        row = np.zeros(FEATURE_SIZE, np.float32)
        row[FRAME_FEATURES] = frame
        if self._frame is not None:
            row[VELOCITY_FEATURES] = frame[:COORDINATES] - self._frame[:COORDINATES]
        shown = state.copy()
        shown[self._lagged] = self._state[self._lagged]
        row[STATE_FEATURES] = shown
        row[HISTORY_FEATURES] = self._history.ravel()
        self._frame, self._state = frame.copy(), state.copy()
        self._history = np.concatenate([self._history[1:], np.zeros((1, CONTROL_SIZE), np.float32)])
        return row

    def observe(self, controls: Floats) -> None:
        """`controls: (28,)` of the newest frame, for the history of the frames to come."""
        self._history[-1] = controls
