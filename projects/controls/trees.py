"""Gradient-boosted trees on seven frames: the strongest baseline, and the slowest. Needs the extra `trees`."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from projects.controls.layout import BINARY, CONTROL_SIZE, COORDINATES, FEATURE_SIZE, HOTBAR
from projects.controls.logistic import best_f1_thresholds, value_heads
from projects.controls.masks import Bools, Floats
from projects.controls.metrics import Prediction, Truth

SETTINGS: dict[str, Any] = {"max_iter": 60, "max_leaf_nodes": 15, "early_stopping": False, "random_state": 0}
INSTALL = "trees: not installed, COCKPIT_EXTRAS=trees ./run installs them"
"""Name of a row without values."""


def installed() -> bool:
    """Whether scikit-learn is there."""
    return importlib.util.find_spec("sklearn") is not None


class Trees:
    """Boosted trees for each control: features of the newest frame, six poses before, and how the pose moved between.

    Thresholds are those of best F1 on the training frames: of trees this small they are within .005 of those of new
    sessions.

    Args:
        rows: (n, 2021) of the training frames, as `window_linear.window_rows`. truth: of the same frames.
    """

    def __init__(self, rows: Floats, truth: Truth) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        inputs, self._models = _with_movement(rows), dict[int, Any]()
        for column, kept in zip(BINARY, truth.masks.binary.T, strict=True):
            self._fit(column, HistGradientBoostingClassifier(**SETTINGS), inputs, truth.targets[:, column] > 0.5, kept)
        for columns, kept in value_heads(truth):
            for column in columns:
                self._fit(column, HistGradientBoostingRegressor(**SETTINGS), inputs, truth.targets[:, column], kept)
        slots, changed = truth.targets[:, HOTBAR].argmax(axis=1), truth.masks.hotbar_changed
        self._fit(HOTBAR[0], HistGradientBoostingClassifier(**SETTINGS), inputs, slots, changed)
        self.thresholds = best_f1_thresholds(self._predict(inputs), truth)

    def predict(self, rows: Floats) -> Prediction:
        """What the controls are on `rows: (n, 2021)`."""
        return self._predict(_with_movement(rows))

    def _fit(self, column: int, model: Any, inputs: Floats, wanted: Floats | Bools | Any, kept: Bools) -> None:
        """Where there is nothing to tell apart there is no model, and zeros are predicted."""
        if len(np.unique(wanted[kept])) > 1:
            self._models[column] = model.fit(inputs[kept], wanted[kept])

    def _predict(self, inputs: Floats) -> Prediction:
        values = np.zeros((len(inputs), CONTROL_SIZE), np.float32)
        for column, model in self._models.items():
            if column in BINARY:
                values[:, column] = model.predict_proba(inputs)[:, 1]
            elif column in HOTBAR:
                values[:, [HOTBAR[slot] for slot in model.classes_]] = model.predict_proba(inputs)
            else:
                values[:, column] = model.predict(inputs)
        return Prediction.of_controls(values)


def _with_movement(rows: Floats) -> Floats:
    """`rows: (n, 2021)` and the differences of their seven poses, oldest first: (n, 3371)."""
    poses = np.concatenate([rows[:, FEATURE_SIZE:], rows[:, :COORDINATES]], axis=1)
    return np.concatenate([rows, poses[:, COORDINATES:] - poses[:, :-COORDINATES]], axis=1)
