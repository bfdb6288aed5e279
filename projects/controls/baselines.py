"""What a model must beat, and what it could reach at best: three baselines and the demo data's ceiling.

All are scored like the model, on exactly the frames that its windows of the same sessions target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from engines.contract.errors import DataError
from projects.controls.features import frame_features, target_frames
from projects.controls.layout import ACTION, CONTROL_SIZE, CURSOR, FEATURE_SIZE, HOTBAR, INV, LOOK
from projects.controls.masks import Floats, Masks, frame_masks
from projects.controls.metrics import Prediction, Scores, Thresholds, score_controls
from projects.controls.recordings import Recording

PENALTY, HOTBAR_PENALTY = 1e-3, 1e-2
"""Weight of the squared coefficients beside the mean loss; slot changes are few, so theirs is larger."""
_BINARY = (*ACTION, *INV)
_LINEAR = (*LOOK, *CURSOR)


def evaluate_baselines(
    train: Sequence[Recording], validation: Sequence[Recording], ceiling_folder: Path | None = None
) -> dict[str, Scores]:
    """Scores by name on the validation sessions: all-zero, repeat-last, logistic, and ceiling where there is one.

    The ceiling is scored where `ceiling_folder` holds an `.npz` for every validation session. Raises `DataError` for
    a ceiling file that does not fit its session.
    """
    held_out = _frames(validation)
    fitted = _Logistic(_frames(train))
    scores = {
        "all-zero": _score(np.zeros_like(held_out.targets), held_out),
        "repeat-last": _score(_previous(validation), held_out),
        "logistic": _score(fitted.predict(held_out.features), held_out, fitted.thresholds),
    }
    ceiling = _ceiling(validation, ceiling_folder)
    if ceiling is not None:
        # thresholds chosen in hindsight, on the frames that are scored: an upper bound may only err upwards
        scores["ceiling"] = _score(ceiling, held_out, best_f1_thresholds(ceiling, held_out.targets, held_out.masks))
    return scores


class _Frames(NamedTuple):
    """features: (n, 671). targets: (n, 28). masks: of the same n frames."""

    features: Floats
    targets: Floats
    masks: Masks


def _frames(recordings: Sequence[Recording]) -> _Frames:
    """The frames of some sessions that are the target of a window."""
    targets = _targeted(recordings, lambda recording: recording.controls)
    state = _targeted(recordings, lambda recording: recording.state)
    return _Frames(_targeted(recordings, frame_features), targets, frame_masks(targets, state))


def _targeted(recordings: Sequence[Recording], rows: Callable[[Recording], Floats]) -> Floats:
    return np.concatenate([rows(recording)[target_frames(len(recording))] for recording in recordings])


def _previous(recordings: Sequence[Recording]) -> Floats:
    """The controls of the frame before each target, nothing before the first frame of a session."""
    nothing = np.zeros((1, CONTROL_SIZE), np.float32)
    return _targeted(recordings, lambda recording: np.concatenate([nothing, recording.controls[:-1]]))


def _ceiling(recordings: Sequence[Recording], folder: Path | None) -> Floats | None:
    """The best prediction of every target: (n, 28); None unless `folder` has it for every session."""
    if folder is None or not all((folder / f"{recording.name}.npz").is_file() for recording in recordings):
        return None
    return _targeted(recordings, lambda recording: read_ceiling(folder / f"{recording.name}.npz", len(recording)))


def read_ceiling(path: Path, frames: int) -> Floats:
    """The best prediction of a session of `frames` frames: (frames, 28). Raises `DataError` for anything else."""
    try:
        with np.load(path, allow_pickle=False) as content:
            expected: Floats = content["expected"].astype(np.float32)
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise DataError(f"{path}: not a ceiling file ({error}); make the demo data again in an empty folder.") from None
    if expected.shape != (frames, CONTROL_SIZE):
        raise DataError(
            f"{path}: expected has shape {expected.shape}, its recording needs ({frames}, {CONTROL_SIZE}); "
            "make the demo data again in an empty folder."
        )
    return expected


def _score(rows: Floats, frames: _Frames, thresholds: Thresholds | None = None) -> Scores:
    """Scores of predicted control rows: (n, 28), probabilities where a control is on or off."""
    groups = (rows[:, columns] for columns in (ACTION, LOOK, HOTBAR, CURSOR, INV))
    return score_controls(Prediction(*groups), frames.targets, frames.masks, thresholds)


def best_f1_thresholds(rows: Floats, targets: Floats, masks: Masks) -> Thresholds:
    """The thresholds with the best F1 of each control in `rows: (n, 28)` over all distinct values."""
    action = [_best_f1(rows[kept, c], targets[kept, c]) for c, kept in zip(ACTION, masks.action.T, strict=True)]
    inv = [_best_f1(rows[masks.screen_open, c], targets[masks.screen_open, c]) for c in INV]
    return Thresholds(np.array(action), np.array(inv))


def _best_f1(scores: Floats, targets: Floats) -> float:
    """The value at or above which saying yes gives the best F1; .5 where there is no positive."""
    wanted = targets > 0.5
    if not wanted.any():
        return 0.5
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(wanted[order])
    f1 = 2 * hits / (np.arange(1, len(order) + 1) + wanted.sum())
    # equal scores are taken together: only the last of each run is a threshold
    last = np.append(np.diff(scores[order]) != 0, True)
    return float(scores[order][last][f1[last].argmax()])


class _Logistic:
    """One linear layer on the last frame's 671 features, history included: all that can be read off a single row."""

    def __init__(self, train: _Frames) -> None:
        deviation = train.features.std(axis=0)
        self._mean = train.features.mean(axis=0)
        self._scale = np.where(deviation < 1e-6, 1, deviation)
        rows = self._rows(train.features)
        self._weights = torch.zeros(FEATURE_SIZE + 1, CONTROL_SIZE)
        self._fit_binary(rows, train)
        self._fit_hotbar(rows, train)
        self._fit_linear(rows, train)
        self.thresholds = best_f1_thresholds(self.predict(train.features), train.targets, train.masks)

    def predict(self, features: Floats) -> Floats:
        """Control rows (n, 28) for `features: (n, 671)`."""
        values = self._rows(features) @ self._weights
        values[:, _BINARY] = values[:, _BINARY].sigmoid()
        values[:, LOOK] = values[:, LOOK].clamp(-1, 1)
        values[:, CURSOR] = values[:, CURSOR].clamp(0, 1)
        predicted: Floats = values.numpy()
        return predicted

    def _rows(self, features: Floats) -> Tensor:
        """Standardised features and a constant: (n, 672)."""
        scaled = (features - self._mean) / self._scale
        return torch.from_numpy(np.column_stack([scaled, np.ones(len(features))]).astype(np.float32))

    def _fit_binary(self, rows: Tensor, train: _Frames) -> None:
        inv_mask = np.repeat(train.masks.screen_open[:, None], len(INV), axis=1)
        kept = torch.from_numpy(np.column_stack([train.masks.action, inv_mask])).float()
        kept /= kept.sum(dim=0).clamp(min=1)
        wanted = torch.from_numpy((train.targets[:, _BINARY] > 0.5).astype(np.float32))

        def loss(weights: Tensor) -> Tensor:
            return (F.binary_cross_entropy_with_logits(rows @ weights, wanted, reduction="none") * kept).sum()

        self._weights[:, _BINARY] = _minimise(loss, len(_BINARY), PENALTY)

    def _fit_hotbar(self, rows: Tensor, train: _Frames) -> None:
        changed = train.masks.hotbar_changed
        if not changed.any():
            return
        slots = torch.from_numpy(train.targets[changed][:, HOTBAR].argmax(axis=1))
        chosen = rows[torch.from_numpy(changed)]
        self._weights[:, HOTBAR] = _minimise(
            lambda weights: F.cross_entropy(chosen @ weights, slots), len(HOTBAR), HOTBAR_PENALTY
        )

    def _fit_linear(self, rows: Tensor, train: _Frames) -> None:
        for columns, kept in ((LOOK, train.masks.look), (CURSOR, train.masks.screen_open)):
            self._weights[:, columns] = _least_squares(rows.numpy()[kept], train.targets[kept][:, columns])


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
