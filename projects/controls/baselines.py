"""What a model must beat, and what it could reach at best: baselines and the demo data's ceiling.

All are scored like the model, on exactly the frames that its windows of the same sessions target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engines.basics import npz
from engines.basics.errors import DataError
from projects.controls.features import frame_features, target_frames
from projects.controls.layout import CONTROL_SIZE
from projects.controls.logistic import Frames, Logistic, best_f1_thresholds
from projects.controls.masks import Floats, frame_masks
from projects.controls.metrics import Prediction, Scores, Truth, score_controls
from projects.controls.recordings import Recording
from projects.controls.report import CEILING
from projects.controls.trees import INSTALL, Trees, installed
from projects.controls.window_linear import WindowLinear, window_rows

MOST_ROWS = 50_000
"""Training frames that the regressions are fitted on; neighbours are so alike that more add little but time."""


class Baselines:
    """Predictors fitted on the sessions of `train`; trees where asked for."""

    def __init__(self, train: Sequence[Recording], *, trees: bool = False) -> None:
        newest, seen = target_rows(train, MOST_ROWS), at_targets(train, window_rows, MOST_ROWS)
        self._logistic = Logistic(newest)
        self.window_linear = WindowLinear(seen, newest.truth, target_groups(train, MOST_ROWS))
        self._trees = Trees(seen, newest.truth) if trees and installed() else None
        self._missing = trees and self._trees is None

    def scores(self, sessions: Sequence[Recording], ceiling_folder: Path | None = None) -> dict[str, Scores]:
        """By name, on `sessions`: all-zero, repeat-last, logistic, window-linear, trees; ceiling where there is one.

        Trees without scikit-learn are a row without values, whose name says what to install. The ceiling is scored
        where `ceiling_folder` holds an `.npz` for every session. Raises `DataError` for a ceiling file that does not
        fit its session.
        """
        newest, shown = target_rows(sessions), at_targets(sessions, window_rows)
        truth, linear = newest.truth, self.window_linear
        scores = {
            "all-zero": score_controls(Prediction.of_controls(np.zeros_like(truth.targets)), truth),
            "repeat-last": score_controls(Prediction.of_controls(truth.previous), truth),
            "logistic": score_controls(self._logistic.predict(newest.features), truth, self._logistic.thresholds),
            "window-linear": score_controls(linear.predict(shown), truth, linear.thresholds),
        }
        if self._trees is not None:
            scores["trees"] = score_controls(self._trees.predict(shown), truth, self._trees.thresholds)
        elif self._missing:
            scores[INSTALL] = Scores({}, None, ())
        if (rows := _ceiling(sessions, ceiling_folder)) is not None:
            ceiling = Prediction.of_controls(rows)
            # thresholds chosen in hindsight, on the frames that are scored: an upper bound may only err upwards
            scores[CEILING] = score_controls(ceiling, truth, best_f1_thresholds(ceiling, truth))
        return scores


def target_rows(recordings: Sequence[Recording], most: int | None = None) -> Frames:
    """The frames of some sessions that are the target of a window, thinned as by `at_targets`."""

    def rows(of: Callable[[Recording], Floats]) -> Floats:
        return at_targets(recordings, of, most)

    targets, state = rows(lambda recording: recording.controls), rows(lambda recording: recording.state)
    return Frames(
        rows(frame_features), Truth(targets, rows(_previous), frame_masks(targets, state, recordings[0].look_deadzone))
    )


def at_targets(recordings: Sequence[Recording], rows: Callable[[Recording], Floats], most: int | None = None) -> Floats:
    """`rows` of the frames that are the target of a window; of every k-th such frame where there are over `most`."""
    frames = _thinned(recordings, most)
    return np.concatenate([rows(one)[of_session] for one, of_session in zip(recordings, frames, strict=True)])


def target_groups(recordings: Sequence[Recording], most: int | None = None) -> NDArray[np.int64]:
    """The number of the session of each row of `at_targets`: (n,)."""
    frames = _thinned(recordings, most)
    return np.repeat(np.arange(len(frames)), [len(of_session) for of_session in frames])


def _thinned(recordings: Sequence[Recording], most: int | None) -> list[range]:
    """The frames of each session that are the target of a window; every k-th of them where there are over `most`."""
    frames = [target_frames(len(recording)) for recording in recordings]
    stride = 1 if most is None else math.ceil(sum(map(len, frames)) / most)
    return [of_session[::stride] for of_session in frames]


def _previous(recording: Recording) -> Floats:
    """The controls of the frame before each frame, nothing before the first."""
    return np.concatenate([np.zeros((1, CONTROL_SIZE), np.float32), recording.controls[:-1]])


def _ceiling(recordings: Sequence[Recording], folder: Path | None) -> Floats | None:
    """The best prediction of every target: (n, 28); None unless `folder` has it for every session."""
    if folder is None or not all((folder / f"{recording.name}.npz").is_file() for recording in recordings):
        return None
    return at_targets(recordings, lambda recording: read_ceiling(folder / f"{recording.name}.npz", len(recording)))


def read_ceiling(path: Path, frames: int) -> Floats:
    """The best prediction of a session of `frames` frames: (frames, 28). Raises `DataError` for anything else."""
    try:
        expected: Floats = npz.arrays_in(path)["expected"].astype(np.float32)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path}: not a ceiling file ({error}); make the demo data again in an empty folder.") from None
    if expected.shape != (frames, CONTROL_SIZE):
        raise DataError(
            f"{path}: expected has shape {expected.shape}, its recording needs ({frames}, {CONTROL_SIZE}); "
            "make the demo data again in an empty folder."
        )
    return expected
