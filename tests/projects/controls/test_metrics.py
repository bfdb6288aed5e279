"""Scores equal counts made frame by frame."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projects.controls.layout import ACTION, BINARY, CONTROL_NAMES, CURSOR, INV, LOOK
from projects.controls.masks import Masks, frame_masks
from projects.controls.metrics import (
    LEAST_SUPPORT,
    Prediction,
    Scoring,
    Thresholds,
    Truth,
    combined_score,
    score_controls,
)
from tests.projects.controls.sessions import random_session


def random_case(frames: int, seed: int) -> tuple[Prediction, Truth]:
    session = random_session("a", frames, seed)
    rng = np.random.default_rng(seed + 1)

    def chance(width: int) -> np.ndarray:
        return np.round(rng.random((frames, width)), 1).astype(np.float32)  # often exactly on a threshold

    hotbar = rng.random((frames, 9)).astype(np.float32)
    prediction = Prediction(chance(12), chance(2) * 2 - 1, hotbar, chance(2), chance(3))
    before = np.concatenate([np.zeros((1, 28), np.float32), session.controls[:-1]])
    return prediction, Truth(session.controls, before, frame_masks(session.controls, session.state))


@settings(max_examples=40, deadline=None)
@given(
    frames=st.integers(1, 60),
    seed=st.integers(0, 10**6),
    threshold=st.sampled_from([0.3, 0.5, 0.9]),
    least=st.sampled_from([1, 3]),
)
def test_every_value_equals_a_count_frame_by_frame(frames: int, seed: int, threshold: float, least: int) -> None:
    prediction, truth = random_case(frames, seed)
    targets, masks = truth.targets, truth.masks
    thresholds = Thresholds(np.full(12, threshold), np.full(3, threshold))
    scores = score_controls(prediction, truth, thresholds, scoring=Scoring(least))
    f1: dict[str, list[float]] = {"action": [], "inv": []}
    for group, columns, chances in (("action", ACTION, prediction.action), ("inv", INV, prediction.inv)):
        for k, column in enumerate(columns):
            hits = false = missed = 0
            for n in range(frames):
                if not (masks.screen_open[n] if group == "inv" else masks.gameplay[n] or column == 13):
                    continue
                on, wanted = float(chances[n, k]) >= threshold, targets[n, column] == 1
                hits, false, missed = hits + (on and wanted), false + (on and not wanted), missed + (wanted and not on)
            score = next(score for score in scores.controls if score.name == CONTROL_NAMES[column])
            assert score.support == hits + missed
            assert score.precision == (hits / (hits + false) if hits + false else None)
            assert score.recall == (hits / (hits + missed) if hits + missed else None)
            found = 2 * hits / (2 * hits + false + missed) if hits + missed else None
            assert score.f1 == (pytest.approx(found) if found is not None else None)
            if found is not None and hits + missed >= least:
                f1[group].append(found)
    assert scores.values["action_f1"] == (pytest.approx(np.mean(f1["action"])) if f1["action"] else None)
    assert scores.values["inv_f1"] == (pytest.approx(np.mean(f1["inv"])) if f1["inv"] else None)
    looking = [n for n in range(frames) if masks.gameplay[n] and masks.look_active[n]]
    errors = [(float(prediction.look[n, k]) - float(targets[n, c])) ** 2 for n in looking for k, c in enumerate(LOOK)]
    assert scores.values["look_mse"] == (pytest.approx(np.mean(errors)) if errors else None)
    same = [np.sign(prediction.look[n, 0]) == np.sign(targets[n, 9]) for n in looking if targets[n, 9]]
    assert scores.values["look_direction_yaw"] == (pytest.approx(np.mean(same)) if same else None)
    changed = [n for n in range(frames) if targets[n, 14:23].max() == 1]
    right = [prediction.hotbar[n].argmax() == targets[n, 14:23].argmax() for n in changed]
    assert scores.values["hotbar_accuracy"] == (pytest.approx(np.mean(right)) if right else None)
    screens = [n for n in range(frames) if masks.screen_open[n]]
    pixels = [
        math.hypot(*(float(prediction.cursor[n, k] - targets[n, c]) * (1280, 720)[k] for k, c in enumerate(CURSOR)))
        for n in screens
    ]
    assert scores.values["cursor_pixels"] == (pytest.approx(np.mean(pixels), rel=1e-5) if pixels else None)
    idle = [all(float(p) < threshold for p in prediction.action[n]) for n in range(frames) if masks.idle[n]]
    assert scores.values["idle_accuracy"] == (pytest.approx(np.mean(idle)) if idle else None)


def test_the_perfect_prediction_scores_one() -> None:
    _, truth = random_case(500, 0)
    scores = score_controls(Prediction.of_controls(truth.targets), truth)
    assert scores.values["action_change_f1"] == scores.values["inv_change_f1"] == 1
    assert scores.score == pytest.approx(1)
    assert scores.values["cursor_pixels"] == 0
    assert scores.values["look_direction_pitch"] == 1


def test_a_direction_is_judged_where_its_own_axis_turns() -> None:
    _, truth = random_case(3, 0)
    targets, state = np.zeros_like(truth.targets), np.zeros((3, 46), np.float32)
    targets[:, LOOK] = [(0.5, 0), (0.5, 0), (0, 0.5)]
    prediction = Prediction.of_controls(targets)
    prediction.look[:] = [(0.1, 0.3), (-0.1, 0.3), (0.2, 0.9)]
    values = score_controls(prediction, Truth(targets, targets, frame_masks(targets, state))).values
    assert (values["look_direction_yaw"], values["look_direction_pitch"]) == (0.5, 1.0)


VALUES = {
    "action_f1": 0.5, "look_mse": 0.1, "hotbar_accuracy": 0.25, "cursor_mse": 0.2, "inv_f1": 0.6, "idle_accuracy": 0.9,
}  # fmt: skip


def test_the_combined_score_is_the_weighted_sum() -> None:
    assert combined_score(VALUES) == pytest.approx(0.4 * 0.5 + 0.2 * 0.9 + 0.1 * (0.25 + 0.8 + 0.6 + 0.9))


def test_a_huge_look_error_costs_no_more_than_its_share() -> None:
    assert combined_score({**VALUES, "look_mse": 4.0}) == pytest.approx(combined_score({**VALUES, "look_mse": 1.0}))


def test_heads_without_support_share_out_their_weight() -> None:
    without = combined_score({**VALUES, "hotbar_accuracy": None, "inv_f1": None})
    assert without == pytest.approx((0.4 * 0.5 + 0.2 * 0.9 + 0.1 * (0.8 + 0.9)) / 0.8)
    assert combined_score(dict.fromkeys(VALUES)) is None


def test_a_value_that_is_not_a_number_gives_no_score() -> None:
    assert combined_score({**VALUES, "look_mse": math.nan}) is None


def test_heads_without_a_frame_are_null() -> None:
    prediction, truth = random_case(50, 1)
    nothing = np.zeros(50, np.bool_)
    empty = Masks(nothing, nothing, nothing, nothing, nothing)
    scores = score_controls(prediction, replace(truth, masks=empty))
    assert all(value is None for name, value in scores.values.items() if name not in ("action_f1", "action_change_f1"))
    supported = [control.name for control in scores.controls if control.f1 is not None]
    assert supported == ["open_inventory"], "it is judged on every frame"


def with_presses(truth: Truth, presses: int) -> Truth:
    """`truth` with attack (column 7) pressed on every other frame of gameplay, so many times."""
    targets, previous = truth.targets.copy(), truth.previous.copy()
    targets[:, 7] = previous[:, 7] = 0
    targets[np.flatnonzero(truth.masks.gameplay)[: 2 * presses : 2], 7] = 1
    return replace(truth, targets=targets, previous=previous)


@pytest.mark.parametrize("presses", [LEAST_SUPPORT - 1, LEAST_SUPPORT])
def test_a_control_counts_from_twenty_positives_on(presses: int) -> None:
    """With 19 its own F1 is shown, and the mean is that of the others; change F1 goes by the frames it goes on."""
    prediction, truth = random_case(900, 2)
    scores = score_controls(prediction, with_presses(truth, presses))
    attack = scores.controls[7]
    assert (attack.name, attack.support, attack.onsets) == ("attack", presses, presses)
    assert attack.f1 is not None
    assert attack.change_f1 is not None
    kept = [k for k in range(12) if k != 7 or presses == LEAST_SUPPORT]
    assert all(scores.controls[k].onsets >= LEAST_SUPPORT for k in kept)
    assert scores.counts(attack) == (presses == LEAST_SUPPORT)
    for key, of in (("action_f1", "f1"), ("action_change_f1", "change_f1")):
        assert scores.values[key] == pytest.approx(np.mean([getattr(scores.controls[k], of) for k in kept]))


def test_scores_are_counted_again_by_another_rule() -> None:
    prediction, truth = random_case(900, 2)
    truth = with_presses(truth, 5)
    strict, all_of_them = score_controls(prediction, truth), score_controls(prediction, truth, scoring=Scoring(1))
    assert strict.values["action_f1"] != all_of_them.values["action_f1"]
    assert strict.score != all_of_them.score
    assert strict.by(Scoring(1)) == all_of_them
    assert all_of_them.by(Scoring(LEAST_SUPPORT)) == strict
    off = frozenset(CONTROL_NAMES[column] for column in ACTION)
    assert score_controls(prediction, truth, off=off).by(Scoring(1)) == score_controls(
        prediction, truth, off=off, scoring=Scoring(1)
    )


def test_unsupported_controls_count_in_no_mean() -> None:
    prediction, truth = random_case(900, 2)
    before = score_controls(prediction, truth)
    targets = truth.targets.copy()
    targets[:, 7] = 0
    after = score_controls(prediction, replace(truth, targets=targets))
    attack = next(control for control in after.controls if control.name == "attack")
    assert (attack.support, attack.recall, attack.f1) == (0, None, None)
    kept = [control.f1 for control in before.controls[:12] if control.name != "attack"]
    assert after.values["action_f1"] == pytest.approx(np.mean([f1 for f1 in kept if f1 is not None]))


@settings(max_examples=30, deadline=None)
@given(frames=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_change_frames_are_those_that_differ_from_the_frame_before(frames: int, seed: int) -> None:
    prediction, truth = random_case(frames, seed)
    chances = np.concatenate([prediction.action, prediction.inv], axis=1)
    for k, score in enumerate(score_controls(prediction, truth).controls):
        column, said = BINARY[k], []
        for n in range(frames):
            judged = truth.masks.screen_open[n] if k >= 12 else truth.masks.gameplay[n] or column == 13
            before = truth.targets[n - 1, column] if n else 0
            if judged and truth.targets[n, column] != before:
                said.append((bool(chances[n, k] >= 0.5), truth.targets[n, column] == 1))
        hits = said.count((True, True))
        wrong = said.count((True, False)) + said.count((False, True))
        onsets = sum(wanted for _, wanted in said)
        assert score.changes == len(said)
        assert score.change_f1 == (pytest.approx(2 * hits / (2 * hits + wrong)) if onsets else None)


def test_repeating_the_last_controls_earns_nothing_where_they_change() -> None:
    _, truth = random_case(500, 3)
    held = score_controls(Prediction.of_controls(truth.previous), truth)
    assert (held.values["action_f1"] or 0) > 0, "a held key is right on most frames"
    assert held.values["action_change_f1"] == held.values["inv_change_f1"] == 0
