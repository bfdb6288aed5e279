"""The thresholds of a run: as configured, tuned on its validation sessions, and tuned on all sessions but one.

What is on at them, and what is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from projects.controls.config import ControlsConfig
from projects.controls.layout import ACTION, INV
from projects.controls.masks import Bools
from projects.controls.metrics import Prediction, Thresholds
from projects.controls.sending import Rules
from projects.controls.thresholds import search_thresholds, sent_controls

Review = Mapping[str, NDArray[Any]]
OF_CONTROLS = ("names", "fps", "margins", "holds")
"""Arrays of a review that have no row a window."""


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


def tuned_through(cfg: ControlsConfig) -> Rules | None:
    """The rules that thresholds are tuned through; None in a run of a version that tuned them without."""
    return None if cfg.post_processing.pulse_margin is None else cfg.post_processing.rules


def tuned_on_others(cfg: ControlsConfig, review: Review) -> dict[int, Thresholds]:
    """By session, the thresholds that are tuned on all the other ones; empty where there is one session only."""
    sessions = review["groups"]
    found = np.unique(sessions).tolist()
    return {one: tuned(cfg, rows_of(review, sessions != one)) for one in found} if len(found) > 1 else {}


def decisions(review: Review, thresholds: Mapping[int, Thresholds], rules: Rules | None = None) -> Bools:
    """(n, 15): which on-off controls are on at the thresholds of each session; with `rules`, which are sent."""
    on = np.zeros(review["scores"].shape, np.bool_)
    for session, its in thresholds.items():
        mine = review["groups"] == session
        values = np.concatenate([its.action, its.inv])
        part = rows_of(review, mine)
        on[mine] = part["scores"] >= values if rules is None else sent_controls(part, rules, values)
    return on


def decided(prediction: Prediction, on: Bools) -> Prediction:
    """`prediction` with its buttons decided, `on: (n, 15)`, to be scored at any threshold."""
    action, inv = np.split(on.astype(np.float32), [len(ACTION)], axis=1)
    return Prediction(action, prediction.look, prediction.hotbar, prediction.cursor, inv)


def rows_of(review: Review, kept: Bools) -> Review:
    """A review of the windows `kept: (n,)` alone."""
    return {name: array if name in OF_CONTROLS else array[kept] for name, array in review.items()}
