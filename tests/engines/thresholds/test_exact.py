"""Curves and optima equal an evaluation of every cut, one by one."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engines.basics.errors import DataError
from engines.thresholds import search
from engines.thresholds.head import Head
from engines.thresholds.objectives import ACCURACY_COVERAGE, F1, F1_LESS_ALARMS, Objective
from engines.thresholds.plateau import Optimum, best_plateau
from engines.thresholds.search import exact_optimum, order_keys
from engines.thresholds.sweep import Sweep
from engines.thresholds.tally import Tally

OBJECTIVES = [F1, F1_LESS_ALARMS, ACCURACY_COVERAGE]
Rows = list[tuple[float, bool, bool]]

ties = st.integers(0, 8).map(lambda k: k / 8)
probabilities = st.floats(0, 1, width=32)
skewed = st.floats(0, 1, width=32).map(lambda p: float(np.float32(p**20)))
crowded = st.integers(0, 40).map(lambda k: float(np.float32(0.5) + k * np.float32(2**-24)))
logits = st.floats(-50, 50, width=32)
anything = st.one_of(
    st.floats(allow_nan=False, width=32),
    st.sampled_from([0.0, -0.0, math.inf, -math.inf, float(np.finfo(np.float32).max), 1e-45, -1e-45]),
)


def rows_of(scores: st.SearchStrategy[float], most: int = 40) -> st.SearchStrategy[Rows]:
    return st.lists(st.tuples(scores, st.booleans(), st.booleans()), min_size=2, max_size=most)


any_rows = st.one_of(*(rows_of(kind) for kind in (ties, probabilities, skewed, crowded, logits, anything)))


def head_of(rows: Rows, objective: Objective, dtype: Any = np.float32) -> Head:
    scores, targets, quiet = (np.array(column) for column in zip(*rows, strict=True))
    return Head("x", objective, scores.astype(dtype), targets, np.zeros(len(rows), np.int64), quiet & ~targets)


def exact_value(head: Head, threshold: float) -> Fraction:
    """The objective at one threshold, counted frame by frame, in whole numbers."""
    assert head.quiet is not None
    on = [float(score) >= threshold for score in head.scores]
    hits = sum(o and bool(t) for o, t in zip(on, head.targets, strict=True))
    if head.objective is ACCURACY_COVERAGE:
        return Fraction(hits, len(on))
    f1 = Fraction(2 * hits, sum(on) + int(head.targets.sum()))
    if head.objective is F1:
        return f1
    alarms = sum(o and bool(i) for o, i in zip(on, head.quiet, strict=True))
    return f1 - Fraction(alarms, 2 * max(1, int(head.quiet.sum())))


def thresholds_that_matter(scores: NDArray[np.floating]) -> list[float]:
    """A finite threshold for every way of cutting the scores that there is."""
    distinct = sorted({float(score) for score in scores if math.isfinite(score)})
    top = math.nextafter(distinct[-1], math.inf) if distinct else 0.0
    return [-1e308, *distinct, top]


@pytest.mark.behaviour("every-distinct-score-candidate")
@settings(deadline=None, max_examples=200)
@given(any_rows, st.sampled_from(OBJECTIVES), st.sampled_from([np.float32, np.float64]))
@example([(0.5, True, False), (0.5, False, False)], F1, np.float32)
@example([(math.inf, False, True), (-math.inf, True, False)], F1_LESS_ALARMS, np.float32)
def test_the_optimum_is_the_best_of_all_cuts(rows: Rows, objective: Objective, dtype: Any) -> None:
    head = head_of(rows, objective, dtype)
    if head.untunable:
        return
    found = exact_optimum(head)
    best = max(exact_value(head, threshold) for threshold in thresholds_that_matter(head.scores))
    assert math.isfinite(found.threshold)
    saved = json.loads(json.dumps(found.threshold))
    assert exact_value(head, saved) == best
    assert found.objective == pytest.approx(float(best), abs=1e-12)
    # compared in the precision of the scores, as a policy does, it is the same cut, if that precision holds it at all
    if abs(saved) <= np.finfo(dtype).max:
        assert (head.scores >= head.scores.dtype.type(saved)).tolist() == [float(s) >= saved for s in head.scores]


@pytest.mark.behaviour("every-distinct-score-candidate")
@settings(deadline=None, max_examples=200)
@given(any_rows, st.sampled_from(OBJECTIVES), st.sampled_from([np.float32, np.float64]))
def test_bounding_and_refining_equals_sorting_everything(rows: Rows, objective: Objective, dtype: Any) -> None:
    head = head_of(rows, objective, dtype)
    if not head.untunable:
        assert exact_optimum(head) == Sweep(head.scores, head.targets, head.quiet).optimum(objective)


@pytest.mark.behaviour("threshold-lies-between-equal")
@settings(deadline=None, max_examples=100)
@given(any_rows, st.sampled_from(OBJECTIVES), st.randoms(use_true_random=False))
def test_shuffling_rows_changes_nothing(rows: Rows, objective: Objective, random: Any) -> None:
    head = head_of(rows, objective)
    if head.untunable:
        return
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert exact_optimum(head_of(shuffled, objective)) == exact_optimum(head)


@settings(deadline=None)
@given(any_rows)
def test_curves_hold_the_rates_of_every_cut(rows: Rows) -> None:
    head = head_of(rows, F1)
    assert head.quiet is not None
    sweep = Sweep(head.scores, head.targets, head.quiet)
    assert sweep.scores.tolist() == sorted({float(score) for score in head.scores})
    curves = (sweep.counts.f1, sweep.counts.precision, sweep.counts.recall, sweep.counts.alarm_rate)
    assert all(len(curve) == len(sweep.scores) + 1 for curve in curves)
    for k, threshold in enumerate([*sweep.scores, math.nan]):  # nothing reaches NaN: the cut that says yes to nothing
        on = head.scores.astype(np.float64) >= threshold
        hits, yes = (on & head.targets).sum(), on.sum()
        expected = (
            2 * hits / (yes + head.positives) if yes + head.positives else math.nan,
            hits / yes if yes else math.nan,
            hits / head.positives if head.positives else math.nan,
            on[head.quiet].mean() if head.quiet.any() else math.nan,
        )
        assert [float(curve[k]) for curve in curves] == pytest.approx(expected, nan_ok=True)


@pytest.mark.behaviour("every-distinct-score-candidate")
@pytest.mark.parametrize("kind", [Sweep, Tally])
@settings(deadline=None)
@given(any_rows, st.floats(allow_nan=False), st.sampled_from([np.float32, np.float64]))
def test_counts_at_any_threshold(kind: type[Sweep | Tally], rows: Rows, threshold: float, dtype: Any) -> None:
    head = head_of(rows, F1_LESS_ALARMS, dtype)
    assert head.quiet is not None
    counts = kind(head.scores, head.targets, head.quiet).at(threshold)
    on = head.scores.astype(np.float64) >= threshold
    assert counts.hits == (on & head.targets).sum()
    assert counts.false_yes == (on & ~head.targets).sum()
    assert counts.alarms == (on & head.quiet).sum()
    assert counts.positives == head.positives
    assert counts.negatives == head.negatives
    assert counts.quiet == head.quiet.sum()


@settings(deadline=None)
@given(any_rows, st.floats(allow_nan=False), st.sampled_from([np.float32, np.float64]), st.booleans())
def test_a_tally_knows_what_a_sweep_knows(rows: Rows, near: float, dtype: Any, between: bool) -> None:
    """Counts at every distinct score and beside it, and the scores next to any threshold."""
    head = head_of(rows, F1_LESS_ALARMS, dtype)
    sweep = Sweep(head.scores, head.targets, head.quiet)
    tally = Tally(head.scores, head.targets, head.quiet)
    at = np.array([near, *(math.nextafter(score, math.inf) if between else score for score in sweep.scores)])
    expected, found = sweep.at(at), tally.at(at)
    for kind in ("hits", "false_yes", "alarms", "positives", "negatives", "quiet"):
        assert np.array_equal(getattr(found, kind), getattr(expected, kind))
    for threshold in at.tolist():
        assert tally.lowest_from(threshold) == min(sweep.scores[sweep.scores >= threshold], default=None)
        assert tally.highest_below(threshold) == max(sweep.scores[sweep.scores < threshold], default=None)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda it: it.title)
@pytest.mark.parametrize("kind", ["smooth", "ties", "skewed", "one positive", "two crowds", "useless", "signed"])
def test_many_rows_in_many_buckets(objective: Objective, kind: str) -> None:
    """Enough rows for buckets to be left out; the reference sorts them all."""
    random = np.random.default_rng(5)
    n = 20_000
    targets = random.random(n) < 0.1
    scores = 1 / (1 + np.exp(-(random.normal(size=n) + 2 * targets - 2)))
    if kind == "ties":
        scores = np.round(scores, 2)
    elif kind == "skewed":
        scores = scores**40
    elif kind == "one positive":
        targets = np.arange(n) == 77
    elif kind == "two crowds":
        scores = np.where(targets, 1 - scores * 1e-6, scores * 1e-9)
    elif kind == "useless":
        scores = random.random(n)
    elif kind == "signed":
        scores = random.normal(size=n) + targets
    quiet = (random.random(n) < 0.4) & ~targets
    for dtype in (np.float16, np.float32, np.float64):
        head = Head("x", objective, scores.astype(dtype), targets, np.zeros(n, np.int64), quiet)
        assert exact_optimum(head) == Sweep(head.scores, targets, quiet).optimum(objective)


def test_only_the_buckets_that_can_win_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_rows = []

    class Counting(Sweep):
        def __init__(self, scores: Any, *others: Any) -> None:
            sorted_rows.append(len(scores))
            super().__init__(scores, *others)

    monkeypatch.setattr(search, "Sweep", Counting)
    random = np.random.default_rng(1)
    targets = random.random(100_000) < 0.1
    scores = (random.normal(size=100_000) + 3 * targets).astype(np.float32)
    exact_optimum(Head("x", F1, scores, targets, np.zeros(100_000, np.int64)))
    assert sum(sorted_rows) < 20_000


@settings(deadline=None)
@given(st.lists(anything, min_size=2, max_size=20), st.sampled_from([np.float32, np.float64]))
def test_keys_are_in_the_order_of_the_scores(values: list[float], dtype: Any) -> None:
    scores = np.array(values, dtype)
    keys = order_keys(scores).tolist()
    for a, key_a in zip(scores, keys, strict=True):
        for b, key_b in zip(scores, keys, strict=True):
            assert (a < b, a == b) == (key_a < key_b, key_a == key_b)


def tuned(scores: list[float], targets: list[int], objective: Objective = F1, quiet: list[int] | None = None) -> Any:
    flags = None if quiet is None else np.array(quiet, np.bool_)
    groups = np.zeros(len(scores), np.int64)
    return exact_optimum(Head("x", objective, np.array(scores), np.array(targets, np.bool_), groups, flags))


@pytest.mark.behaviour("threshold-lies-between-equal")
def test_a_tie_is_never_cut() -> None:
    assert tuned([0.5, 0.5], [1, 0]).objective == pytest.approx(2 / 3)


@pytest.mark.behaviour("support-interval-over-sessions")
def test_the_threshold_is_the_middle_of_the_plateau() -> None:
    assert tuned([0.2, 0.9], [0, 1]).threshold == pytest.approx(0.55)


def test_neighbouring_cuts_of_equal_worth_are_one_plateau() -> None:
    """Answering the wrong .4 and .6 costs nothing in accuracy × coverage: every threshold from .2 to .8 is as good."""
    assert tuned([0.2, 0.4, 0.6, 0.8], [0, 0, 0, 1], ACCURACY_COVERAGE).threshold == pytest.approx(0.4)


def test_of_equal_plateaus_the_nearest_to_a_half_is_taken() -> None:
    """F1 is 2/3 from .9 up and from .3 up: the middles are .85 and .25."""
    found = tuned([0.9, 0.8, 0.7, 0.3, 0.2], [1, 0, 0, 1, 0], F1)
    assert found.objective == pytest.approx(2 / 3)
    assert found.threshold == pytest.approx(0.25)


def test_of_two_plateaus_as_near_to_a_half_the_higher_one_is_taken() -> None:
    """It says yes less often."""
    scores, values = np.array([0.125, 0.375, 0.625, 0.875]), np.array([0.0, 1.0, 0.0, 1.0, 0.0])
    assert best_plateau(scores, values) == Optimum(0.75, 1.0)


def test_a_negative_objective_is_beaten_by_saying_yes_to_nothing() -> None:
    found = tuned([0.95, 0.58, 0.3, 0.05], [0, 0, 0, 1], F1_LESS_ALARMS, [1, 1, 1, 0])
    assert found.objective == 0
    assert 0.95 < found.threshold < 1


def test_yes_to_nothing_where_the_highest_score_is_one() -> None:
    found = tuned([1.0, 1.0, 1.0, 0.0], [0, 0, 0, 1], F1_LESS_ALARMS, [1, 1, 1, 0])
    assert (found.objective, found.threshold > 1) == (0, True)
    assert not (np.array([1.0], np.float32) >= np.float32(found.threshold)).any()


@pytest.mark.behaviour("equal-scores-throughout-said")
def test_scores_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(DataError, match=r"1 of 3 scores are not numbers \(the first at index 1\)"):
        tuned([0.5, math.nan, 0.2], [1, 0, 0])
    for kind in (Sweep, Tally):
        with pytest.raises(DataError, match="1 of 2 scores"):
            kind(np.array([math.nan, 0.1]), np.array([True, False]))


@pytest.mark.behaviour("control-without-positives-without")
def test_why_a_head_cannot_be_tuned() -> None:
    def why(scores: list[float], targets: list[int]) -> str:
        return Head("x", F1, np.array(scores), np.array(targets, np.bool_), np.zeros(len(scores), np.int64)).untunable

    assert why([0.1, 0.2], [0, 0]) == "no positives"
    assert why([0.1, 0.2], [1, 1]) == "no negatives"
    assert why([], []) == "never judged"
    assert why([0.1, math.nan], [0, 1]) == "1 of 2 scores are not numbers"
    assert why([0.1, 0.2], [0, 1]) == ""
