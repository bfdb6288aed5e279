"""Boosted trees: what they see, and a row that says what is missing where they cannot be fitted."""

from __future__ import annotations

import numpy as np
import pytest

from projects.controls import baselines, trees
from projects.controls.baselines import Baselines, at_targets, target_rows
from projects.controls.metrics import score_controls
from projects.controls.report import baseline_table
from projects.controls.run_tables import change_table
from projects.controls.window_linear import window_rows
from tests.projects.controls.sessions import random_session
from tests.projects.controls.test_window_linear import leading


def test_movement_is_the_difference_from_pose_to_pose() -> None:
    recording = random_session("a", 40, 1)
    rows = trees._with_movement(window_rows(recording))
    moved = np.diff(recording.frames[14:21, :225].astype(np.float32), axis=0)
    assert rows.shape == (40, 2021 + 6 * 225)
    np.testing.assert_array_equal(rows[20, 2021:].reshape(6, 225), moved)


def test_without_the_package_the_row_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "installed", lambda: False)
    train, held_out = [random_session("a", 90, 1)], [random_session("b", 60, 2)]
    scores = Baselines(train, trees=True).scores(held_out)
    assert list(scores) == ["all-zero", "repeat-last", "logistic", "window-linear", trees.INSTALL]
    assert "COCKPIT_EXTRAS=trees" in trees.INSTALL
    table = baseline_table(scores["repeat-last"], scores, "")
    (row,) = [row for row in table.rows if row[0] == trees.INSTALL]
    assert set(row[1:]) <= {None, ""}
    assert trees.INSTALL not in change_table(scores).columns


@pytest.mark.slow  # a minute: each of 20 fits sorts 3,371 columns
def test_trees_find_what_led_a_control_by_three_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setitem(trees.SETTINGS, "max_iter", 10)
    train, held_out = [leading(f"s{k}", k) for k in range(2)], [leading("new", 9)]
    fitted = trees.Trees(at_targets(train, window_rows), target_rows(train).truth)
    truth = target_rows(held_out).truth
    scores = score_controls(fitted.predict(at_targets(held_out, window_rows)), truth, fitted.thresholds)
    attack = next(control for control in scores.controls if control.name == "attack")
    assert (attack.f1 or 0) > 0.95
