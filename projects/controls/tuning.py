"""The thresholds of a run: as configured, tuned on its validation sessions, and tuned on all sessions but one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from projects.controls.config import ControlsConfig
from projects.controls.layout import ACTION, INV
from projects.controls.metrics import Prediction, Thresholds
from projects.controls.thresholds import search_thresholds

Review = Mapping[str, NDArray[np.generic]]


def configured(cfg: ControlsConfig) -> Thresholds:
    """The thresholds in use while training."""
    wanted = cfg.thresholds
    action, inv = np.full(len(ACTION), wanted.action), np.full(len(INV), wanted.inv)
    return Thresholds(action, inv, wanted.hotbar_min_confidence)


def tuned(cfg: ControlsConfig, review: Review) -> Thresholds:
    """The thresholds that an export would hold, from the arrays of `evaluation.review_arrays`."""
    wanted = cfg.thresholds
    found = search_thresholds(review, wanted.hotbar_min_confidence, wanted.search)["thresholds"]
    return Thresholds(np.array(found["action"]), np.array(found["inv_click"]), found["hotbar_min_confidence"])


def tuned_on_others(cfg: ControlsConfig, prediction: Prediction, review: Review) -> Prediction | None:
    """`prediction` with its buttons decided (0 or 1), each session by thresholds from all other sessions.

    None where there is one session only.
    """
    sessions = review["groups"]
    if len(np.unique(sessions)) < 2:
        return None
    action, inv = np.zeros_like(prediction.action), np.zeros_like(prediction.inv)
    for session in np.unique(sessions):
        mine = sessions == session
        others = {name: array if name == "names" else array[~mine] for name, array in review.items()}
        thresholds = tuned(cfg, others)
        action[mine] = prediction.action[mine] >= thresholds.action
        inv[mine] = prediction.inv[mine] >= thresholds.inv
    return Prediction(action, prediction.look, prediction.hotbar, prediction.cursor, inv)
