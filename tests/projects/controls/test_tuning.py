"""Thresholds tuned on all sessions, and on all sessions but the one that is judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from projects.controls.config import ControlsConfig
from projects.controls.evaluation import review_arrays
from projects.controls.masks import frame_masks
from projects.controls.metrics import Prediction, Truth
from projects.controls.tuning import configured, decided, decisions, tuned, tuned_on_others

ATTACK = 7


def config(**thresholds: object) -> ControlsConfig:
    return ControlsConfig.model_validate(
        {"project": "controls", "data": {"path": str(Path("x"))}, "thresholds": thresholds}
    )


def case() -> tuple[Prediction, Truth, np.ndarray]:
    """Three sessions of ten frames; attack is pressed on half of each, told apart at .3, .3 and .7."""
    targets, scores = np.zeros((30, 28), np.float32), np.zeros((30, 28), np.float32)
    sessions = np.repeat([0, 1, 2], 10)
    targets[::2, ATTACK] = 1
    cut = np.array([0.3, 0.3, 0.7])[sessions]
    scores[:, ATTACK] = np.where(targets[:, ATTACK] > 0, cut + 0.05, cut - 0.05)
    masks = frame_masks(targets, np.zeros((30, 46), np.float32))
    return Prediction.of_controls(scores), Truth(targets, targets, masks), sessions


def test_each_session_is_decided_by_thresholds_of_the_others() -> None:
    prediction, truth, sessions = case()
    review = review_arrays(prediction, truth, sessions)
    others = tuned_on_others(config(), review)
    on = decided(prediction, decisions(review, others))
    attack = on.action[:, ATTACK]
    assert set(attack.tolist()) <= {0.0, 1.0}
    # the other two sessions cut between .25 and .35, far below all scores of the third: it is pressed throughout
    assert (attack[sessions == 2] == 1).all()
    alone = {name: array if name == "names" else array[sessions < 2] for name, array in review.items()}
    assert 0.25 < tuned(config(), alone).action[ATTACK] <= 0.35
    for session in (0, 1):
        rest = {name: array if name == "names" else array[sessions != session] for name, array in review.items()}
        threshold = tuned(config(), rest).action[ATTACK]
        assert others[session].action[ATTACK] == threshold
        mine = prediction.action[sessions == session, ATTACK]
        assert np.array_equal(attack[sessions == session], (mine >= threshold).astype(np.float32))
    assert np.array_equal(on.look, prediction.look)


def test_one_session_has_no_others() -> None:
    prediction, truth, sessions = case()
    assert tuned_on_others(config(), review_arrays(prediction, truth, np.zeros_like(sessions))) == {}


def test_thresholds_follow_the_configuration() -> None:
    prediction, truth, sessions = case()
    review = review_arrays(prediction, truth, sessions)
    default = configured(config(action=0.4, inv=0.6, hotbar_min_confidence=0.2))
    assert default.action.tolist() == [0.4] * 12
    assert default.inv.tolist() == [0.6] * 3
    assert default.hotbar == 0.2
    grid = tuned(config(search="grid"), review).action[ATTACK]
    assert round(grid * 20, 9) == round(grid * 20)
    assert tuned(config(hotbar_min_confidence=0.2), review).hotbar == 0.2, "no slot is ever chosen here"
