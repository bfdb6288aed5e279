"""What the controls make of a review: heads, totals, and their place in configs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engines.basics.errors import DataError
from projects.controls.evaluation import review_arrays as review_arrays_of
from projects.controls.layout import ACTION, INV
from projects.controls.masks import Masks
from projects.controls.metrics import LEAST_SUPPORT, Prediction, Scoring, Thresholds, Truth, score_controls
from projects.controls.thresholds import MEANS, NAMES, THRESHOLDS, search_thresholds
from tests.support.fake_review import exported_config, review_arrays

HOTBAR_NAME = "hotbar_min_confidence"


def test_a_head_holds_the_frames_on_which_its_control_is_judged() -> None:
    arrays = review_arrays()
    heads = {head.name: head for head in THRESHOLDS.heads(arrays)}
    assert list(heads) == [*NAMES, HOTBAR_NAME]
    screen = arrays["masks"][:, 14]
    assert len(heads["sprint"].scores) == (~screen).sum()
    assert len(heads["open_inventory"].scores) == len(screen)
    assert heads["inv_left_click"].scores.tolist() == arrays["scores"][screen, 12].tolist()
    assert heads["inv_left_click"].quiet is None
    idle = heads["attack"].quiet
    assert idle is not None
    assert idle.sum() == arrays["idle"].sum()
    assert heads[HOTBAR_NAME].targets.sum() == (arrays["hotbar_correct"] & arrays["hotbar_mask"]).sum()


@pytest.mark.parametrize("least", [1, LEAST_SUPPORT])
def test_totals_are_those_of_the_metrics(least: int) -> None:
    arrays, random = review_arrays(), np.random.default_rng(1)
    if least > 1:
        arrays["least_support"] = np.array(least)
    chosen = {name: float(value) for name, value in zip((*NAMES, HOTBAR_NAME), random.random(16), strict=True)}
    n = len(arrays["idle"])
    targets = np.zeros((n, 28), np.float32)
    targets[:, (*ACTION, *INV)] = arrays["targets"]
    screen = arrays["masks"][:, 14]
    masks = Masks(~screen, screen, np.zeros(n, np.bool_), np.zeros(n, np.bool_), arrays["idle"])
    nothing = np.zeros((n, 9), np.float32)
    prediction = Prediction(arrays["scores"][:, :12], nothing[:, :2], nothing, nothing[:, :2], arrays["scores"][:, 12:])
    values = list(chosen.values())
    thresholds = Thresholds(np.array(values[:12]), np.array(values[12:15]))
    of = Truth(targets, targets, masks)
    assert review_arrays_of(prediction, of, arrays["groups"], least).get("least_support", 1) == least
    found = score_controls(prediction, of, thresholds, scoring=Scoring(least))
    scores, totals = found.values, THRESHOLDS.totals(arrays, chosen)
    counted = [[found.counts(control) for control in some] for some in (found.controls[:12], found.controls[12:])]
    assert least == 1 or sum(map(sum, counted)) < 14, "some are rare"
    words = [f"{sum(some)} of {len(some)}" for some in counted]
    assert THRESHOLDS.counted(arrays) == (dict(zip(MEANS, words, strict=True)) if least > 1 else {})
    assert totals["action F1"] == pytest.approx(scores["action_f1"])
    assert totals["inventory F1"] == pytest.approx(scores["inv_f1"])
    assert totals["idle accuracy"] == pytest.approx(scores["idle_accuracy"])
    asked = arrays["hotbar_mask"]
    answered = (arrays["hotbar_confidence"] >= values[15]) & arrays["hotbar_correct"] & asked
    assert totals["hotbar accuracy × coverage"] == pytest.approx(answered.sum() / asked.sum())


def test_exact_is_never_worse_than_the_grid() -> None:
    arrays = review_arrays()
    exact, grid = (THRESHOLDS.read(search_thresholds(arrays, 0.3, search)) for search in ("exact", "grid"))
    for head in THRESHOLDS.heads(arrays):
        if head.untunable:
            assert exact[head.name] == grid[head.name] == 0.5
            continue

        def objective(threshold: float, head: Any = head) -> float:
            on = head.scores >= threshold
            if head.name == HOTBAR_NAME:
                return float((on & head.targets).mean())
            f1 = 2 * (on & head.targets).sum() / (on.sum() + head.targets.sum())
            return float(f1 if head.quiet is None else f1 - 0.5 * on[head.quiet].mean())

        assert objective(exact[head.name]) >= objective(grid[head.name])
    assert search_thresholds(arrays, 0.3)["thresholds_unsupported"] == ["swap_offhand"]


def test_a_hotbar_that_was_never_asked_keeps_its_default() -> None:
    arrays = review_arrays()
    arrays["hotbar_mask"][:] = False
    found = search_thresholds(arrays, 0.3)
    assert found["thresholds"][HOTBAR_NAME] == 0.3
    assert HOTBAR_NAME in found["thresholds_unsupported"]


def test_thresholds_keep_their_place_in_the_config() -> None:
    exported = exported_config(review_arrays())
    chosen = {name: k / 20 for k, name in enumerate((*NAMES, HOTBAR_NAME))}
    written = THRESHOLDS.write(exported, chosen)
    assert written["thresholds"]["action"][NAMES.index("sneak")] == chosen["sneak"]
    assert written["thresholds"]["inv_click"] == [chosen[name] for name in NAMES[12:]]
    assert written["thresholds"]["hotbar_min_confidence"] == chosen[HOTBAR_NAME]
    assert THRESHOLDS.read(written) == chosen
    assert {key: value for key, value in written.items() if key != "thresholds"} == {
        key: value for key, value in exported.items() if key != "thresholds"
    }
    own = {"thresholds": {"action": 0.5, "inv": 0.4, "hotbar_min_confidence": 0.3}}
    defaults = THRESHOLDS.defaults(own)
    assert (defaults["sprint"], defaults["inv_shift_held"], defaults[HOTBAR_NAME]) == (0.5, 0.4, 0.3)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"idle": None}, "The review lacks idle"),
        ({"names": np.array(["a", "b"])}, "The review is of other controls"),
        ({"groups": np.zeros(3, np.int64)}, r"do not match .*groups 3"),
    ],
)
def test_a_review_that_does_not_fit_is_refused(change: dict[str, Any], sentence: str) -> None:
    arrays = {name: array for name, array in {**review_arrays(), **change}.items() if array is not None}
    with pytest.raises(DataError, match=sentence):
        THRESHOLDS.heads(arrays)


@pytest.mark.parametrize(
    "exported",
    [{}, {"thresholds": [1]}, {"thresholds": {"action": [0.5], "inv_click": [], "hotbar_min_confidence": 0.3}}],
)
def test_a_config_without_thresholds_is_refused(exported: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="thresholds"):
        THRESHOLDS.read(exported)
