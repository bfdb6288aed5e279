"""Calibration against formulas written out, and the weight undone against the optimum it moves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.training.reliability import Calibration
from projects.controls.calibration import calibration, judged_buttons, undo_weight
from projects.controls.masks import frame_masks
from projects.controls.metrics import Prediction, Truth
from tests.projects.controls.sessions import random_session


@given(st.floats(0.01, 0.99), st.floats(0.2, 50))
def test_the_correction_undoes_what_weighting_positives_does(share: float, weight: float) -> None:
    """The q with the least weighted cross-entropy, found by search, is corrected to the share of positives."""
    q = np.linspace(1e-4, 1 - 1e-4, 20001)
    loss = -(weight * share * np.log(q) + (1 - share) * np.log(1 - q))
    best = q[[loss.argmin()]][:, None]
    assert undo_weight(best, np.array([weight]))[0, 0] == pytest.approx(share, abs=0.02)


def test_certainty_and_a_weight_of_one_stay_as_they_are() -> None:
    raw = np.array([[0.0, 0.0], [1.0, 1.0], [0.3, 0.3]])
    fair = undo_weight(raw, np.array([1.0, 9.0]))
    assert fair[:, 0] == pytest.approx(raw[:, 0])
    assert fair[:2, 1].tolist() == [0, 1]
    assert fair[2, 1] == pytest.approx(0.3 / (0.3 + 9 * 0.7))


def test_each_control_is_calibrated_where_it_is_judged() -> None:
    session = random_session("a", 300, 1)
    rng = np.random.default_rng(2)
    prediction = Prediction.of_controls(rng.random((300, 28)).astype(np.float32))
    truth = Truth(session.controls, session.controls, frame_masks(session.controls, session.state))
    weights = np.arange(1.0, 16.0)
    controls = calibration(*judged_buttons(prediction, truth), weights)
    attack, click = controls[7], controls[12]
    game = truth.masks.gameplay
    assert (attack.name, attack.weight, attack.frames) == ("attack", 8.0, game.sum())
    assert attack.pressed == pytest.approx(session.controls[game, 7].mean())
    assert attack.raw.mean == pytest.approx(prediction.action[game, 7].mean(), rel=1e-5)
    q = prediction.action[game, 7].astype(float)
    assert attack.corrected.brier == pytest.approx(np.mean((q / (q + 8 * (1 - q)) - session.controls[game, 7]) ** 2))
    assert (click.name, click.frames) == ("inv_left_click", (~game).sum())
    session.state[:, 38] = 0
    never = Truth(session.controls, session.controls, frame_masks(session.controls, session.state))
    unjudged = calibration(*judged_buttons(prediction, never), weights)[12]
    assert (unjudged.frames, unjudged.pressed, unjudged.raw) == (0, None, Calibration(None, None, None))
