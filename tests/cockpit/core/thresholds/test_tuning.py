"""Steps, locks and undo of thresholds, and what may be saved, against plain counting."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.core.thresholds.curves import curves, histogram
from cockpit.core.thresholds.review import HeadReview, ThresholdReview
from cockpit.core.thresholds.tuning import Tuning, coarse_step, fine_step
from engines.basics.errors import UserError
from engines.thresholds.head import Head
from engines.thresholds.objectives import F1
from tests.support.fake_review import review_arrays, reviewed_run


def head_of(scores: list[float], targets: list[bool]) -> HeadReview:
    count = len(scores)
    return HeadReview(Head("jump", F1, np.array(scores), np.array(targets, np.bool_), np.zeros(count, np.int64)))


@pytest.fixture
def tuning(tmp_path: Path) -> Tuning:
    return Tuning(ThresholdReview(reviewed_run(tmp_path, review_arrays()).run))


@given(
    st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.5, 0.7, 1.0])), min_size=1, max_size=20),
    st.floats(0, 1),
)
def test_a_fine_step_changes_what_is_said_yes_to_or_nothing_can(scores: list[float], at: float) -> None:
    """Against trying every multiple of 0.001 in that direction."""
    it, ordered = head_of(scores, [True] * len(scores)), np.array(scores)
    for direction in (-1, 1):
        ahead = [t for t in (k / 1000 for k in range(1001)) if (t - at) * direction > 1e-9][::direction]
        telling = [t for t in ahead if (ordered >= t).sum() != (ordered >= at).sum()]
        expected = [*telling, *ahead, at][0]
        assert fine_step(it, at, direction) == pytest.approx(expected, abs=2e-9)


def test_steps_stay_within_the_range() -> None:
    it = head_of([0.2, 0.8], [False, True])
    assert [coarse_step(it, at, 1) for at in (0.0, 0.02, 0.05, 0.98, 1.0)] == [0.05, 0.05, 0.1, 1.0, 1.0]
    assert [coarse_step(it, at, -1) for at in (0.0, 0.02, 0.05, 1.0)] == [0.0, 0.0, 0.0, 0.95]
    assert fine_step(it, 0.3, 1) == 0.801
    assert fine_step(it, 0.3, -1) == 0.2


def test_what_is_locked_stays_and_says_so(tuning: Tuning) -> None:
    tuning.lock("jump")
    with pytest.raises(UserError, match="jump is locked: L unlocks it"):
        tuning.set("jump", 0.9)
    with pytest.raises(UserError, match="jump is locked: L unlocks it"):
        tuning.move("jump", 1, coarse=True)
    with pytest.raises(UserError, match="must be a number from 0 to 1"):
        tuning.set("sneak", float("nan"))
    assert tuning.changed == []
    assert not tuning.can_undo


def test_steps_in_a_row_are_undone_at_once(tuning: Tuning) -> None:
    for _ in range(5):
        tuning.move("jump", 1, coarse=False)
    tuning.move("sneak", -1, coarse=True)
    assert tuning.changed == ["sneak", "jump"]
    tuning.undo()
    assert tuning.changed == ["jump"]
    tuning.undo()
    assert tuning.changed == []
    assert not tuning.undo()


def test_read_again_it_goes_on_where_it_was_also_when_others_have_saved(tuning: Tuning) -> None:
    """Undo takes back this person's changes, never what somebody else has saved meanwhile."""
    own = tuning.heads["jump"].head.objective
    for value in (0.6, 0.7):
        tuning.set("jump", value)
        tuning.set("sneak", value)
    tuning.lock("move_forward")
    tuning.next_objective("jump")
    judged_by = tuning.heads["jump"].head.objective
    other = ThresholdReview(tuning.review.run)
    other.save({**other.saved, "sprint": 0.9}, who="other", now=1.0)
    review = ThresholdReview(tuning.review.run)
    assert review.news_for(tuning.review) == "the exported thresholds have changed"
    assert ThresholdReview(review.run).news_for(review) == ""
    again = Tuning(review)
    again.take_over(tuning)
    assert (set(again.changed), again.locked) == ({"jump", "sneak"}, {"move_forward"})
    assert again.heads["jump"].head.objective == judged_by != own
    seen = []
    while True:
        seen.append((again.new["jump"], again.new["sneak"], again.new["sprint"]))
        if not again.undo():
            break
    jump, sneak = tuning.review.saved["jump"], tuning.review.saved["sneak"]
    assert seen == [(0.7, 0.7, 0.9), (0.7, 0.6, 0.9), (0.6, 0.6, 0.9), (0.6, sneak, 0.9), (jump, sneak, 0.9)]
    assert again.changed == []


def test_what_was_not_reviewed_is_not_saved(tuning: Tuning) -> None:
    before = tuning.review.file.path.read_bytes()
    tuning.set("jump", 0.9)
    with pytest.raises(UserError, match="review these thresholds first"):
        tuning.save(who="me", now=1.0)
    sheet = tuning.sheet(tuning.new)
    assert [row.name for row in sheet.rows] == ["jump"]
    tuning.shown(sheet)
    tuning.set("jump", 0.8)
    with pytest.raises(UserError, match="review these thresholds first"):
        tuning.save(who="me", now=1.0)
    assert tuning.review.file.path.read_bytes() == before
    tuning.set("jump", 0.9)
    tuning.save(who="me", now=1.0)
    assert ThresholdReview(tuning.review.run).saved["jump"] == 0.9
    assert tuning.changed == []
    assert not tuning.review.stale


def test_curves_are_what_each_threshold_reaches_and_no_extreme_is_lost(tuning: Tuning) -> None:
    it = tuning.heads["move_forward"]
    scores, targets = it.head.scores.astype(float), it.head.targets
    for line in curves(it):
        if line.style != "run-2":
            continue
        for place in range(0, len(line.x), 97):
            on = scores >= line.x[place]
            f1 = 2 * (on & targets).sum() / max(1, on.sum() + targets.sum())
            assert f1 == pytest.approx(line.raw[place], abs=0.02)  # within one of 2,048 columns
        best = max(2 * ((on := scores >= t) & targets).sum() / (on.sum() + targets.sum()) for t in scores)
        assert line.raw.max() == best


def test_the_histogram_counts_both_classes() -> None:
    random = np.random.default_rng(0)
    scores, targets = random.random(500), random.random(500) < 0.3
    yes, no = histogram(head_of(scores.tolist(), targets.tolist()), 7)
    edges = np.linspace(0, 1, 8)
    assert yes.tolist() == np.histogram(scores[targets], edges)[0].tolist()
    assert no.tolist() == np.histogram(scores[~targets], edges)[0].tolist()
