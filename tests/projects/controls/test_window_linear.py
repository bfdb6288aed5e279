"""Window-linear: its rows, its ridge, and thresholds and penalties from frames that a fit has not seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from projects.controls.baselines import at_targets, target_groups, target_rows
from projects.controls.batches import WindowSource
from projects.controls.demo.names import ATTACK
from projects.controls.features import frame_features
from projects.controls.layout import CURSOR
from projects.controls.logistic import Scaling, button_losses, least_squares, minimise
from projects.controls.metrics import score_controls
from projects.controls.recordings import Recording
from projects.controls.window_linear import WindowLinear, _factor, window_rows
from tests.projects.controls.sessions import random_session


def test_a_row_is_the_newest_frames_features_and_six_poses_before_it() -> None:
    recording = random_session("a", 40, 1)
    rows = window_rows(recording)
    assert rows.shape == (40, 671 + 6 * 225)
    assert np.array_equal(rows[:, :671], frame_features(recording))
    assert np.array_equal(rows[20, 671:].reshape(6, 225), recording.frames[14:20, :225])
    assert np.array_equal(rows[2, 671:].reshape(6, 225), recording.frames[[0, 0, 0, 0, 0, 1], :225])


@pytest.mark.parametrize("shape", [(12, 30), (60, 7)])
def test_ridge_has_no_gradient_left_whichever_way_it_is_solved(shape: tuple[int, int]) -> None:
    random = np.random.default_rng(0)
    rows, wanted = random.standard_normal(shape), random.standard_normal((shape[0], 2)).astype(np.float32)
    for penalty, weights in zip((0.1, 1.0), least_squares(torch.from_numpy(rows), wanted, (0.1, 1.0)), strict=True):
        gradient = rows.T @ (rows @ weights.double().numpy() - wanted) / shape[0] + penalty * weights.double().numpy()
        assert np.abs(gradient).max() < 1e-5


def test_a_factor_changes_the_search_and_not_what_it_finds() -> None:
    recordings = [random_session("a", 400, 1)]
    truth = target_rows(recordings).truth
    rows = Scaling(truth.previous)(truth.previous)
    start = torch.zeros(rows.shape[1], 15)
    penalty = torch.full((15,), 1e-2)
    plain = minimise(button_losses(rows, truth), start, penalty, steps=200)
    factor = _factor(rows)
    assert factor is not None
    torch.testing.assert_close(
        minimise(button_losses(rows, truth), start, penalty, factor, 200), plain, atol=2e-3, rtol=0
    )


def leading(name: str, seed: int) -> Recording:
    """The pose shows an attack three frames before, the cursor its place a frame before; nothing else is to be seen."""
    recording = random_session(name, 500, seed)
    frames, controls = recording.frames * 0, recording.controls.copy()
    shown = np.random.default_rng(seed).random(500) < 0.2
    frames[:, 4] = shown
    controls[:, ATTACK] = np.roll(shown, 3)
    frames[:-1, 7:9] = controls[1:, CURSOR]
    return replace(recording, frames=frames, controls=controls)


def test_its_answer_to_a_window_is_that_to_its_rows() -> None:
    recording = random_session("a", 60, 1)
    fitted = WindowLinear(at_targets([recording], window_rows), target_rows([recording]).truth, np.zeros(31, int))
    batch = WindowSource([recording], torch.device("cpu"), 0.0).batch(torch.arange(31), None)
    said, expected = fitted.answer(batch["features"], batch["mask"]), fitted.predict(window_rows(recording)[29:])
    for head in ("action", "look", "cursor", "inv"):
        np.testing.assert_allclose(getattr(said, head), getattr(expected, head), atol=1e-5)
    shares = np.exp(expected.hotbar)
    np.testing.assert_allclose(said.hotbar, shares / shares.sum(axis=1, keepdims=True), atol=1e-5)


def test_it_sees_what_a_single_frame_does_not_show() -> None:
    train, held_out = [leading(f"s{k}", k) for k in range(4)], [leading("new", 9)]
    fitted = WindowLinear(at_targets(train, window_rows), target_rows(train).truth, target_groups(train))
    truth = target_rows(held_out).truth
    scores = score_controls(fitted.predict(at_targets(held_out, window_rows)), truth, fitted.thresholds)
    attack = next(control for control in scores.controls if control.name == "attack")
    assert (attack.f1 or 0) > 0.95
    assert (scores.values["cursor_mse"] or 1) < 1e-3


def test_groups_are_the_sessions_of_the_thinned_rows() -> None:
    recordings = [random_session("a", 60, 1), random_session("b", 45, 2), random_session("c", 10, 3)]
    assert target_groups(recordings).tolist() == [0] * 31 + [1] * 16 + [2]
    assert target_groups(recordings, 24).tolist() == [0] * 16 + [1] * 8 + [2]
    assert len(at_targets(recordings, window_rows, 24)) == 25


def test_one_session_alone_is_enough() -> None:
    train = [leading("s", 1)]
    fitted = WindowLinear(at_targets(train, window_rows), target_rows(train).truth, target_groups(train))
    assert np.isfinite(fitted.thresholds.action).all()
