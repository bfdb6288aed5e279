"""A linear model of what the transformer sees lately: the newest frame's features and six poses before it.

Beside it a transformer shows what it is worth more than a regression that may look back in time as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from projects.controls.features import frame_features
from projects.controls.layout import BINARY, CONTROL_SIZE, COORDINATES, HOTBAR
from projects.controls.logistic import (
    Losses,
    Scaling,
    as_prediction,
    best_f1_thresholds,
    button_losses,
    least_squares,
    minimise,
    slot_loss,
    value_heads,
)
from projects.controls.masks import Bools, Floats
from projects.controls.metrics import Prediction, Truth
from projects.controls.recordings import Recording

BACK = 6
"""Frames whose pose is seen beside the newest."""
BUTTON_PENALTIES = (1e-3, 1e-4)
"""Weights of the squared coefficients to choose from, strongest first: each fit starts where the one before ended."""
VALUE_PENALTIES = (1e-1, 3e-2, 1e-2, 1e-3)
"""The same for look, cursor and slots, which have fewer frames."""
FOLDS = 3
STEPS = 15
"""Of the search for one fit; more move no figure of the demo."""
FACTOR_ROWS = 8_000
"""What the search is preconditioned by; it does not move the optimum."""
LossesOf = Callable[[Tensor, Truth], Losses]
Solve = Callable[[Tensor, Truth, Tensor, Tensor], list[Tensor]]
"""Rows, truth, weights to start from and penalties (p,) or (p, outputs) to the p weights that fit best."""


def window_rows(recording: Recording) -> Floats:
    """Features and the poses of the six frames before, oldest first, before the start the first one: (frames, 2021)."""
    pose = recording.frames[:, :COORDINATES]
    newest = np.arange(len(recording))
    past = [pose[np.maximum(newest - age, 0)] for age in range(BACK, 0, -1)]
    return np.concatenate([frame_features(recording), *past], axis=1)


class WindowLinear:
    """Ridge regression for look and cursor, logistic for the rest, with penalties and thresholds by cross-validation.

    Sessions are dealt into three folds (a single one is cut into three), and each fold is predicted by a fit on the
    others. An on-off control, or another head as a whole, keeps the penalty of least loss there; thresholds are those
    of best F1 on these predictions; then all is fitted again on everything.

    Args:
        rows: (n, 2021) of the training frames, as `window_rows`. truth: of the same frames. groups: (n,) their
            sessions, numbered in order.
    """

    def __init__(self, rows: Floats, truth: Truth, groups: NDArray[np.int64]) -> None:
        self._scaling = Scaling(rows)
        fit = _Fit(self._scaling(rows), truth, _folds(groups))
        self._weights = fit.weights
        self.thresholds = best_f1_thresholds(as_prediction(fit.held_out), truth)

    def predict(self, rows: Floats) -> Prediction:
        """What the controls are on `rows: (n, 2021)`."""
        return as_prediction(self._scaling(rows) @ self._weights)

    def answer(self, features: Tensor, mask: Tensor) -> Prediction:
        """The same of windows, features (n, 30, 671) and mask (n, 30), with slots as probabilities.

        Of a session shorter than seven frames, where padding is zero, it sees zeros in the place of the first pose.
        """
        past = features[:, -1 - BACK : -1, :COORDINATES].flatten(1)
        found = self.predict(torch.cat([features[:, -1], past], dim=1).cpu().numpy())
        return replace(found, hotbar=torch.from_numpy(found.hotbar).softmax(1).numpy())


class _Fit:
    """weights: (2022, 28). held_out: (n, 28), linear outputs of fits that have not seen the row's fold."""

    def __init__(self, rows: Tensor, truth: Truth, folds: Sequence[Bools]) -> None:
        self._rows, self._truth, self._folds = rows, truth, folds
        self._factor = _factor(rows)
        self.weights = torch.zeros(rows.shape[1], CONTROL_SIZE)
        self.held_out = torch.zeros(len(rows), CONTROL_SIZE)
        everywhere = np.ones(len(rows), np.bool_)
        self._head(BINARY, everywhere, button_losses, self._search(button_losses), BUTTON_PENALTIES)
        self._head(HOTBAR, truth.masks.hotbar_changed, slot_loss, self._search(slot_loss), VALUE_PENALTIES)
        for columns, kept in value_heads(truth):
            self._head(columns, kept, partial(_squared_error, columns), partial(_ridge, columns), VALUE_PENALTIES)

    def _head(
        self, columns: tuple[int, ...], kept: Bools, losses: LossesOf, solve: Solve, penalties: tuple[float, ...]
    ) -> None:
        """Fit one head on the frames that are `kept: (n,)`; weights of a head without any stay zero."""
        if not kept.any():
            return
        outputs = torch.zeros(len(penalties), len(self._rows), len(columns))
        totals: list[Tensor] = [torch.zeros(1)] * len(penalties)
        found = [torch.zeros(self._rows.shape[1], len(columns))]
        for fold in self._folds:
            if (kept & fold).any() and (kept & ~fold).any():
                seen, hidden = self._part(kept & ~fold), self._part(kept & fold)
                found = solve(*seen, torch.zeros_like(found[0]), torch.tensor(penalties))
                for place, weights in enumerate(found):
                    outputs[place, torch.from_numpy(kept & fold)] = hidden[0] @ weights
                    totals[place] = totals[place] + losses(*hidden)(weights)
        best = torch.stack(totals).argmin(dim=0)  # (1,), or one an output
        self.held_out[:, columns] = outputs.take_along_dim(best.expand(1, len(self._rows), len(columns)), 0)[0]
        self.weights[:, columns] = solve(*self._part(kept), found[-1], torch.tensor(penalties)[best][None])[0]

    def _part(self, kept: Bools) -> tuple[Tensor, Truth]:
        return self._rows[torch.from_numpy(kept)], self._truth[kept]

    def _search(self, losses: LossesOf) -> Solve:
        def search(rows: Tensor, truth: Truth, start: Tensor, penalties: Tensor) -> list[Tensor]:
            found = [start]
            for penalty in penalties:
                found.append(minimise(losses(rows, truth), found[-1], penalty, self._factor, STEPS))
            return found[1:]

        return search


def _squared_error(columns: tuple[int, ...], rows: Tensor, truth: Truth) -> Losses:
    wanted = torch.from_numpy(truth.targets[:, columns])
    return lambda weights: (rows @ weights - wanted).square().mean()


def _ridge(columns: tuple[int, ...], rows: Tensor, truth: Truth, start: Tensor, penalties: Tensor) -> list[Tensor]:
    return least_squares(rows, truth.targets[:, columns], penalties.flatten().tolist())


def _factor(rows: Tensor) -> Tensor | None:
    """The Cholesky factor of a quarter of the rows' second moments, about the Hessian of a logistic regression.

    None where rows are so few that a search without it takes less time than the factor.
    """
    if len(rows) < rows.shape[1]:
        return None
    some = rows[:: max(1, len(rows) // FACTOR_ROWS)]
    moments = some.T @ some / (4 * len(some))
    moments.diagonal().add_(2 * max(BUTTON_PENALTIES))
    factor: Tensor = torch.linalg.cholesky(moments)
    return factor


def _folds(groups: NDArray[np.int64]) -> list[Bools]:
    """Which rows are in each of three folds, (n,) each: sessions in turn, where there are so many, else blocks."""
    sessions = np.unique(groups)
    if len(sessions) >= FOLDS:
        places = np.searchsorted(sessions, groups) % FOLDS
    else:
        places = np.arange(len(groups)) * FOLDS // len(groups)
    return [places == fold for fold in range(FOLDS)]
