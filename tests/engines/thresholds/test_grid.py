"""The grid search equals the loop it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.thresholds.grid import GRID, grid_optimum
from engines.thresholds.head import Head
from engines.thresholds.objectives import ACCURACY_COVERAGE, F1, F1_LESS_ALARMS, Objective
from engines.thresholds.plateau import Optimum


def head_of(
    scores: list[float] | NDArray[np.floating],
    targets: list[bool],
    quiet: list[bool] | None = None,
    objective: Objective = F1_LESS_ALARMS,
) -> Head:
    flags = None if quiet is None else np.array(quiet)
    return Head("x", objective, np.array(scores), np.array(targets), np.zeros(len(targets), np.int64), flags)


def slow_objectives(head: Head) -> list[float]:
    assert head.quiet is not None
    values = []
    for k in range(2, 19):
        on = [score >= k / 20 for score in head.scores]
        hits = sum(o and t for o, t in zip(on, head.targets, strict=True))
        f1 = 2 * hits / (sum(on) + sum(head.targets))
        false_yes = sum(o for o, i in zip(on, head.quiet, strict=True) if i) / max(1, sum(head.quiet))
        values.append(f1 - 0.5 * false_yes)
    return values


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 100), st.booleans(), st.booleans()), min_size=2, max_size=40))
def test_search_finds_the_best_of_the_slow_loop(rows: list[tuple[int, bool, bool]]) -> None:
    scores, targets, quiet = (list(column) for column in zip(*rows, strict=True))
    head = head_of(np.array(scores) / 100, targets, quiet)
    if head.untunable:
        return
    found, values = grid_optimum(head), slow_objectives(head)
    assert found.objective == pytest.approx(max(values))
    tied = [k / 20 for k, value in enumerate(values, 2) if value == max(values)]
    nearest = min(abs(t - 0.5) for t in tied)
    assert found.threshold == max(t for t in tied if abs(t - 0.5) < nearest + 1e-9)


def test_of_two_values_as_near_to_a_half_the_higher_one_is_taken() -> None:
    """F1 is 2/3 at .45, 1/2 at .5 and 2/3 from .55 on."""
    scores, targets = [0.47, 0.47, 0.52, 0.95], [True, False, False, True]
    assert grid_optimum(head_of(scores, targets, objective=F1)) == Optimum(0.55, 2 / 3)


def test_the_grid_has_both_ends() -> None:
    assert GRID.tolist() == [round(0.1 + 0.05 * k, 2) for k in range(17)]
    assert grid_optimum(head_of([0.89, 0.95], [False, True])) == Optimum(0.9, 1.0)


def test_a_negative_objective_still_moves_the_threshold() -> None:
    """From a start of 0 a search would keep .5 here: whatever is said yes to first is wrong, on an quiet frame."""
    found = grid_optimum(head_of([0.95, 0.58, 0.05], [False, False, True], [True, True, False]))
    assert found.threshold == 0.6
    assert found.objective == pytest.approx(-0.25)


def test_a_score_on_the_threshold_is_a_yes() -> None:
    assert grid_optimum(head_of([0.5, 0.45], [True, False])) == Optimum(0.5, 1.0)


def test_without_idle_frames_only_f1_counts() -> None:
    scores, targets = [0.2, 0.4, 0.6, 0.8], [False, True, False, True]
    f1 = grid_optimum(head_of(scores, targets, objective=F1))
    assert grid_optimum(head_of(scores, targets)) == grid_optimum(head_of(scores, targets, [False] * 4)) == f1


def test_confidence_maximises_accuracy_times_coverage() -> None:
    confidence, right = np.array([0.9, 0.62, 0.41, 0.3]), [True, True, False, False]
    found = grid_optimum(head_of(confidence, right, objective=ACCURACY_COVERAGE))
    assert found == Optimum(0.5, max(((confidence >= k / 20) & right).sum() / 4 for k in range(2, 19)))
