"""How much a score owes to game state that gives away the controls of its own frame.

sprinting, sneaking, is_using_item and hotbar_slot are effects of the controls. They are shown in three ways: of the
frame before (lagged, as models are trained), of the same frame (as recorded), or not at all (dropped).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from engines.training.project import Batch, Source
from projects.controls.baselines import at_targets, target_rows
from projects.controls.features import lagged_state
from projects.controls.layout import LEAKING_STATE, STATE_FEATURES, WINDOW
from projects.controls.logistic import Frames, Logistic
from projects.controls.masks import Floats
from projects.controls.metrics import Prediction, Scores, score_controls
from projects.controls.predictions import predict
from projects.controls.recordings import Recording

TRAINED, OTHERWISE = "lagged", ("as recorded", "dropped")
MOST_ROWS = 10_000
"""Training frames of a fit: there are three, and all that matters is how they compare."""
_COLUMNS = [STATE_FEATURES.start + column for column in LEAKING_STATE]


def leaking_windows(recordings: Sequence[Recording], shown: str) -> Floats:
    """The four columns in every window of `recordings`: (windows, 30, 4), zero where padded."""
    windows = []
    for recording in recordings:
        padding = np.zeros((max(0, WINDOW - len(recording)), len(LEAKING_STATE)), np.float32)
        rows = np.concatenate([padding, _leaking(recording, shown)])
        windows.append(np.lib.stride_tricks.sliding_window_view(rows, WINDOW, axis=0).transpose(0, 2, 1))
    return np.concatenate(windows)


def _leaking(recording: Recording, shown: str) -> Floats:
    """The four columns of every frame: (frames, 4)."""
    if shown == "dropped":
        return np.zeros((len(recording), len(LEAKING_STATE)), np.float32)
    state = lagged_state(recording.state) if shown == TRAINED else recording.state
    return state[:, LEAKING_STATE]


def predict_shown(
    model: nn.Module, source: Source, recordings: Sequence[Recording], batch_size: int
) -> dict[str, Prediction]:
    """Predictions of a trained model by how it is shown the state, `OTHERWISE` than in its training."""
    device = next(model.parameters()).device
    predictions = {}
    for shown in OTHERWISE:
        values = torch.from_numpy(leaking_windows(recordings, shown)).to(device)

        def show(batch: Batch, indices: Tensor, values: Tensor = values) -> None:
            batch["features"][:, :, _COLUMNS] = values[indices.to(device)]

        predictions[shown], _ = predict(model, source, batch_size, show)
    return predictions


def logistic_leaks(train: Sequence[Recording], validation: Sequence[Recording]) -> dict[str, Scores]:
    """Scores of the regression baseline, fitted again on each way to show the state."""
    rows, held_out = target_rows(train, MOST_ROWS), target_rows(validation)
    scores = {}
    for shown in (TRAINED, *OTHERWISE):
        _show(rows, train, shown, MOST_ROWS)
        _show(held_out, validation, shown)
        fitted = Logistic(rows)
        scores[shown] = score_controls(fitted.predict(held_out.features), held_out.truth, fitted.thresholds)
    return scores


def _show(rows: Frames, recordings: Sequence[Recording], shown: str, most: int | None = None) -> None:
    """Write the four columns of `target_rows(recordings, most)` in place."""
    rows.features[:, _COLUMNS] = at_targets(recordings, lambda recording: _leaking(recording, shown), most)
