"""Logistic and linear regressions on a single feature row: the baseline that learns, and the thresholds for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from engines.thresholds.objectives import F1
from engines.thresholds.plateau import DEFAULT
from engines.thresholds.sweep import Sweep
from projects.controls.layout import ACTION, BINARY, CONTROL_SIZE, CURSOR, FEATURE_SIZE, HOTBAR, INV, LOOK
from projects.controls.masks import Bools, Floats
from projects.controls.metrics import Prediction, Thresholds, Truth

PENALTY, HOTBAR_PENALTY = 1e-3, 1e-2
"""Weight of the squared coefficients beside the mean loss; slot changes are few, so theirs is larger."""


class Frames(NamedTuple):
    """features: (n, 671). truth: of the same n frames."""

    features: Floats
    truth: Truth


class Scaling:
    """Standardises columns by the mean and deviation of `rows: (n, columns)`; what does not vary keeps its scale."""

    def __init__(self, rows: Floats) -> None:
        deviation = rows.std(axis=0)
        self._mean, self._scale = rows.mean(axis=0), np.where(deviation < 1e-6, 1, deviation).astype(np.float32)

    def __call__(self, rows: Floats) -> Tensor:
        """Standardised rows and a constant: (n, columns + 1)."""
        scaled = np.empty((len(rows), rows.shape[1] + 1), np.float32)
        np.subtract(rows, self._mean, out=scaled[:, :-1])
        scaled[:, :-1] /= self._scale
        scaled[:, -1] = 1
        return torch.from_numpy(scaled)


class Logistic:
    """One linear layer on the last frame's 671 features, history included: all that can be read off a single row."""

    def __init__(self, train: Frames) -> None:
        self._scaling = Scaling(train.features)
        rows = self._scaling(train.features)
        self._weights = torch.zeros(FEATURE_SIZE + 1, CONTROL_SIZE)
        empty = torch.zeros(FEATURE_SIZE + 1, 1)
        self._weights[:, BINARY] = minimise(button_losses(rows, train.truth), empty.expand(-1, len(BINARY)), PENALTY)
        if train.truth.masks.hotbar_changed.any():
            start = empty.expand(-1, len(HOTBAR))
            self._weights[:, HOTBAR] = minimise(slot_loss(rows, train.truth), start, HOTBAR_PENALTY)
        for columns, kept in value_heads(train.truth):
            wanted = train.truth.targets[kept][:, columns]
            self._weights[:, columns] = least_squares(rows[torch.from_numpy(kept)], wanted, [PENALTY])[0]
        self.thresholds = best_f1_thresholds(self.predict(train.features), train.truth)

    def predict(self, features: Floats) -> Prediction:
        """What the controls are on rows of `features: (n, 671)`."""
        return as_prediction(self._scaling(features) @ self._weights)


def as_prediction(values: Tensor) -> Prediction:
    """What linear outputs `values: (n, 28)`, in the layout of a recording, say: they are changed in place."""
    values[:, BINARY] = values[:, BINARY].sigmoid()
    values[:, LOOK] = values[:, LOOK].clamp(-1, 1)
    values[:, CURSOR] = values[:, CURSOR].clamp(0, 1)
    return Prediction.of_controls(values.numpy())


Losses = Callable[[Tensor], Tensor]
"""Weights (columns, outputs) to their losses, (outputs,) or a scalar."""


def button_losses(rows: Tensor, truth: Truth) -> Losses:
    """The mean cross-entropy of each of the 15 on-off controls over the frames where it is judged."""
    kept = torch.from_numpy(truth.masks.binary).float()
    kept /= kept.sum(dim=0).clamp(min=1)
    wanted = torch.from_numpy((truth.targets[:, BINARY] > 0.5).astype(np.float32))

    def losses(weights: Tensor) -> Tensor:
        return (F.binary_cross_entropy_with_logits(rows @ weights, wanted, reduction="none") * kept).sum(dim=0)

    return losses


def slot_loss(rows: Tensor, truth: Truth) -> Losses:
    """The mean cross-entropy of the slot over the frames that choose one; there must be some."""
    changed = truth.masks.hotbar_changed
    slots = torch.from_numpy(truth.targets[changed][:, HOTBAR].argmax(axis=1))
    chosen = rows[torch.from_numpy(changed)]
    return lambda weights: F.cross_entropy(chosen @ weights, slots)


def value_heads(truth: Truth) -> tuple[tuple[tuple[int, ...], Bools], ...]:
    """The columns of look and of the cursor, each with the frames (n,) where it is judged."""
    return (LOOK, truth.masks.look), (CURSOR, truth.masks.screen_open)


def least_squares(rows: Tensor, wanted: Floats, penalties: Sequence[float]) -> list[Tensor]:
    """Ridge regressions: (columns, outputs) float32 weights for each penalty; zeros without rows.

    Xᵀ (X Xᵀ + λn)⁻¹ y where there are fewer rows than columns, else the same as (Xᵀ X + λn)⁻¹ Xᵀ y.
    """
    inputs, outputs = rows.double(), torch.from_numpy(wanted).double()
    few = len(inputs) < inputs.shape[1]
    square, right = (inputs @ inputs.T, outputs) if few else (inputs.T @ inputs, inputs.T @ outputs)
    ridge = max(len(rows), 1) * torch.eye(len(square), dtype=torch.float64)
    factors = [torch.linalg.cholesky(square + penalty * ridge) for penalty in penalties]
    solved = [torch.cholesky_solve(right, factor) for factor in factors]
    return [(inputs.T @ found if few else found).float() for found in solved]


def minimise(
    losses: Losses, start: Tensor, penalty: float | Tensor, factor: Tensor | None = None, steps: int = 100
) -> Tensor:
    """The weights (columns, outputs) of least losses plus penalty, from `start` on, so the fit is deterministic.

    penalty: of the squared weights, one or (outputs,). factor: (columns, columns), the Cholesky factor of about the
    Hessian: the search is then for factorᵀ · weights, which it finds in fewer steps.
    """
    searched = (start if factor is None else factor.T @ start).clone().requires_grad_()
    optimizer = torch.optim.LBFGS([searched], max_iter=steps, history_size=20, line_search_fn="strong_wolfe")

    def weights() -> Tensor:
        return searched if factor is None else torch.linalg.solve_triangular(factor.T, searched, upper=True)

    def closure() -> Tensor:
        optimizer.zero_grad()
        now = weights()
        value = losses(now).sum() + (penalty * now.square()).sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return weights().detach()


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
