"""The grid search equals the loop it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.thresholds.grid import GRID, binary_threshold, confidence_threshold


def slow_objectives(scores: NDArray[np.float64], targets: NDArray[np.bool_], idle: NDArray[np.bool_]) -> list[float]:
    values = []
    for k in range(2, 19):
        on = [score >= k / 20 for score in scores]
        hits = sum(o and t for o, t in zip(on, targets, strict=True))
        f1 = 2 * hits / (sum(on) + sum(targets))
        false_yes = sum(o for o, i in zip(on, idle, strict=True) if i) / max(1, sum(idle))
        values.append(f1 - 0.5 * false_yes)
    return values


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 100), st.booleans(), st.booleans()), min_size=2, max_size=40))
def test_search_finds_the_best_of_the_slow_loop(rows: list[tuple[int, bool, bool]]) -> None:
    scores, targets, idle = (np.array(column) for column in zip(*rows, strict=True))
    choice = binary_threshold(scores / 100, targets, idle)
    if targets.all() or not targets.any():
        assert choice == (0.5, None)
        return
    values = slow_objectives(scores / 100, targets, idle)
    assert choice.objective == pytest.approx(max(values))
    tied = [k / 20 for k, value in enumerate(values, 2) if value > max(values) - 1e-9]
    assert abs(choice.threshold - 0.5) == pytest.approx(min(abs(t - 0.5) for t in tied))
    assert choice.threshold == pytest.approx(max(t for t in tied if abs(t - 0.5) < abs(choice.threshold - 0.5) + 1e-9))


def test_the_grid_has_both_ends() -> None:
    assert GRID.tolist() == [
        0.1,
        0.15,
        0.2,
        0.25,
        0.3,
        0.35,
        0.4,
        0.45,
        0.5,
        0.55,
        0.6,
        0.65,
        0.7,
        0.75,
        0.8,
        0.85,
        0.9,
    ]
    late = binary_threshold(np.array([0.89, 0.95]), np.array([False, True]))
    assert late == (0.9, 1.0)


def test_a_negative_objective_still_moves_the_threshold() -> None:
    """From a start of 0 a search would keep .5 here: whatever is said yes to first is wrong, on an idle frame."""
    scores = np.array([0.95, 0.58, 0.05])
    targets = np.array([False, False, True])
    choice = binary_threshold(scores, targets, idle=np.array([True, True, False]))
    assert choice.objective == pytest.approx(-0.25)
    assert choice.threshold == 0.6


def test_a_score_on_the_threshold_is_a_yes() -> None:
    choice = binary_threshold(np.array([0.5, 0.45], np.float64), np.array([True, False]))
    assert choice == (0.5, 1.0)


def test_without_idle_frames_only_f1_counts() -> None:
    scores, targets = np.array([0.2, 0.4, 0.6, 0.8]), np.array([False, True, False, True])
    none = np.zeros(4, np.bool_)
    assert binary_threshold(scores, targets) == binary_threshold(scores, targets, none)


def test_scores_that_are_not_numbers_are_never_a_yes() -> None:
    choice = binary_threshold(np.array([np.nan, 0.7, 0.2]), np.array([True, True, False]))
    assert choice.objective == pytest.approx(2 / 3)


def test_confidence_maximises_accuracy_times_coverage() -> None:
    confidence = np.array([0.9, 0.62, 0.41, 0.3])
    correct = np.array([True, True, False, False])
    choice = confidence_threshold(confidence, correct)
    values = [((confidence >= k / 20) & correct).sum() / 4 for k in range(2, 19)]
    assert choice == (0.5, max(values))
    assert confidence_threshold(confidence, np.zeros(4, np.bool_)) == (0.5, None)
    assert not confidence_threshold(np.array([]), np.array([], np.bool_)).supported
