"""Logistic and linear regressions on a single feature row: the baseline that learns, and the thresholds for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from engines.thresholds.objectives import F1
from engines.thresholds.plateau import DEFAULT
from engines.thresholds.sweep import Sweep
from projects.controls.layout import ACTION, BINARY, CONTROL_SIZE, CURSOR, FEATURE_SIZE, HOTBAR, INV, LOOK
from projects.controls.masks import Floats
from projects.controls.metrics import Prediction, Thresholds, Truth

PENALTY, HOTBAR_PENALTY = 1e-3, 1e-2
"""Weight of the squared coefficients beside the mean loss; slot changes are few, so theirs is larger."""


class Frames(NamedTuple):
    """features: (n, 671). truth: of the same n frames."""

    features: Floats
    truth: Truth


class Logistic:
    """One linear layer on the last frame's 671 features, history included: all that can be read off a single row."""

    def __init__(self, train: Frames) -> None:
        deviation = train.features.std(axis=0)
        self._mean = train.features.mean(axis=0)
        self._scale = np.where(deviation < 1e-6, 1, deviation)
        rows = self._rows(train.features)
        self._weights = torch.zeros(FEATURE_SIZE + 1, CONTROL_SIZE)
        self._fit_binary(rows, train)
        self._fit_hotbar(rows, train)
        self._fit_linear(rows, train)
        self.thresholds = best_f1_thresholds(self.predict(train.features), train.truth)

    def predict(self, features: Floats) -> Prediction:
        """What the controls are on rows of `features: (n, 671)`."""
        values = self._rows(features) @ self._weights
        values[:, BINARY] = values[:, BINARY].sigmoid()
        values[:, LOOK] = values[:, LOOK].clamp(-1, 1)
        values[:, CURSOR] = values[:, CURSOR].clamp(0, 1)
        return Prediction.of_controls(values.numpy())

    def _rows(self, features: Floats) -> Tensor:
        """Standardised features and a constant: (n, 672)."""
        scaled = (features - self._mean) / self._scale
        return torch.from_numpy(np.column_stack([scaled, np.ones(len(features))]).astype(np.float32))

    def _fit_binary(self, rows: Tensor, train: Frames) -> None:
        kept = torch.from_numpy(train.truth.masks.binary).float()
        kept /= kept.sum(dim=0).clamp(min=1)
        wanted = torch.from_numpy((train.truth.targets[:, BINARY] > 0.5).astype(np.float32))

        def loss(weights: Tensor) -> Tensor:
            return (F.binary_cross_entropy_with_logits(rows @ weights, wanted, reduction="none") * kept).sum()

        self._weights[:, BINARY] = _minimise(loss, len(BINARY), PENALTY)

    def _fit_hotbar(self, rows: Tensor, train: Frames) -> None:
        changed = train.truth.masks.hotbar_changed
        if not changed.any():
            return
        slots = torch.from_numpy(train.truth.targets[changed][:, HOTBAR].argmax(axis=1))
        chosen = rows[torch.from_numpy(changed)]
        self._weights[:, HOTBAR] = _minimise(
            lambda weights: F.cross_entropy(chosen @ weights, slots), len(HOTBAR), HOTBAR_PENALTY
        )

    def _fit_linear(self, rows: Tensor, train: Frames) -> None:
        for columns, kept in ((LOOK, train.truth.masks.look), (CURSOR, train.truth.masks.screen_open)):
            self._weights[:, columns] = _least_squares(rows.numpy()[kept], train.truth.targets[kept][:, columns])


def _least_squares(rows: Floats, wanted: Floats) -> Tensor:
    """Ridge regression: (672, outputs) float32 weights; zeros without rows."""
    inputs = rows.astype(np.float64)
    penalty = PENALTY * max(len(rows), 1) * np.eye(inputs.shape[1])
    solved = np.linalg.solve(inputs.T @ inputs + penalty, inputs.T @ wanted)
    return torch.from_numpy(solved.astype(np.float32))


def _minimise(loss: Callable[[Tensor], Tensor], outputs: int, penalty: float) -> Tensor:
    """The weights (672, outputs) of least loss plus penalty; they start at zero, so the fit is deterministic."""
    weights = torch.zeros(FEATURE_SIZE + 1, outputs, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=100, history_size=20, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(weights) + penalty * weights.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return weights.detach()


def best_f1_thresholds(prediction: Prediction, truth: Truth) -> Thresholds:
    """The thresholds with the best F1 of each control over all distinct values of `prediction`."""
    targets, masks = truth.targets, truth.masks
    screen = masks.screen_open
    action = [_best_f1(prediction.action[kept, k], targets[kept, ACTION[k]]) for k, kept in enumerate(masks.action.T)]
    inv = [_best_f1(prediction.inv[screen, k], targets[screen, column]) for k, column in enumerate(INV)]
    return Thresholds(np.array(action), np.array(inv))


def _best_f1(scores: Floats, targets: Floats) -> float:
    """The value at or above which saying yes gives the best F1; .5 where there is no positive."""
    wanted = targets > 0.5
    return Sweep(scores, wanted).optimum(F1).threshold if wanted.any() else DEFAULT
