"""Scores against what the definitions say, counted pair by pair."""

from __future__ import annotations

import numpy as np
import pytest

from projects.agent.scores import auc, changes, interval, r2, share


def test_auc_is_the_share_of_pairs_in_the_right_order_ties_half() -> None:
    random = np.random.default_rng(0)
    chances, happened = random.integers(0, 6, 200) / 6, random.random(200) < 0.2
    pairs = [
        1.0 if event > other else 0.5 if event == other else 0.0
        for event in chances[happened] for other in chances[~happened]
    ]  # fmt: skip
    assert auc(chances, happened) == pytest.approx(np.mean(pairs))
    assert auc(happened.astype(float), happened) == 1
    assert auc(chances, np.zeros(200, bool)) is None
    assert auc(chances, np.ones(200, bool)) is None


def test_r2_is_zero_for_the_mean_and_one_for_the_truth() -> None:
    true = np.array([1.0, 2.0, 4.0])
    assert r2(true, true) == 1
    assert r2(np.full(3, true.mean()), true) == pytest.approx(0)
    assert r2(np.zeros(3), true) == pytest.approx(1 - 21 / (true.var() * 3))
    assert r2(true, np.ones(3)) is None


def test_changes_need_both_frames_known() -> None:
    movement = np.array([[3, 3, 5, -1, 5, 7, 7, 2]])
    acted = np.array([[True, True, True, True, True, True, False, True]])
    assert changes(movement, acted).tolist() == [[False, False, True, False, True, True, False, False]]
    assert share(np.array([True, False, True]), np.array([True, True, False])) == 0.5
    assert share(np.array([True]), np.array([False])) is None


def test_intervals_are_students() -> None:
    mean, half = interval([1.0, 2.0, 3.0])
    assert mean == 2
    assert half == pytest.approx(4.303 / np.sqrt(3), rel=1e-3)
    assert interval([5.0]) == (5.0, 0.0)
    assert interval(np.arange(100.0))[1] == pytest.approx(1.984 * np.arange(100.0).std(ddof=1) / 10, rel=2e-3)
