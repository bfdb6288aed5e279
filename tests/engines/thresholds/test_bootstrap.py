"""Intervals and regret sets equal a resampling that copies rows and searches each copy."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray

from engines.thresholds import bootstrap
from engines.thresholds.bootstrap import LEAST_GAIN, SEED, Interval, certainty, widened
from engines.thresholds.head import Head, blocks_of
from engines.thresholds.objectives import ACCURACY_COVERAGE, F1, F1_LESS_ALARMS, Objective
from engines.thresholds.search import exact_optimum
from engines.thresholds.sweep import Sweep

T_5 = 2.570582
"""The .975 quantile of Student's t with 5 degrees of freedom, from a table."""


def head_of(sessions: int, frames: int, seed: int = 3, shift: float = 0.0, block: int = 0, digits: int = 2) -> Head:
    """`shift` moves the scores of every second session."""
    random = np.random.default_rng(seed)
    n = sessions * frames
    groups = np.repeat(np.arange(sessions), frames) * 7  # any numbers name a session
    targets = random.random(n) < 0.3
    logits = random.normal(size=n) + 2 * targets - 1 + shift * (groups // 7 % 2)
    scores = np.round(1 / (1 + np.exp(-logits)), digits)
    quiet = (random.random(n) < 0.3) & ~targets
    blocks = blocks_of(groups, block) if block else None
    return Head("x", F1_LESS_ALARMS, scores, targets, groups, quiet, blocks=blocks)


def copied(head: Head, rows: NDArray[np.intp]) -> Head:
    assert head.quiet is not None
    return replace(
        head, scores=head.scores[rows], targets=head.targets[rows], groups=head.groups[rows],
        quiet=head.quiet[rows], blocks=None,
    )  # fmt: skip


def chosen_on_copies(head: Head, resamples: int) -> list[float]:
    """The optimum of every resample of groups, then of blocks inside them, with the same draws, row by row."""
    names = np.unique(head.groups)
    blocks = np.zeros(len(head.groups), np.int64) if head.blocks is None else head.blocks
    random = np.random.default_rng(SEED)
    times = random.multinomial(len(names), np.full(len(names), 1 / len(names)), size=resamples)
    rows: list[list[NDArray[np.intp]]] = [[] for _ in range(resamples)]
    for place, name in enumerate(names):
        inside = np.unique(blocks[head.groups == name])
        drawn = random.multinomial(times[:, place] * len(inside), np.full(len(inside), 1 / len(inside)))
        for resample, weights in enumerate(drawn):
            for block, weight in zip(inside, weights, strict=True):
                rows[resample] += [np.flatnonzero((head.groups == name) & (blocks == block))] * int(weight)
    heads = [copied(head, np.concatenate(parts)) for parts in rows]
    return [exact_optimum(one).threshold for one in heads if not one.untunable]


@pytest.mark.behaviour("support-interval-over-sessions")
@pytest.mark.parametrize("objective", [F1, F1_LESS_ALARMS, ACCURACY_COVERAGE], ids=lambda it: it.title)
@pytest.mark.parametrize(("block", "digits"), [(0, 2), (10, 2), (7, 12)])
def test_interval_and_regret_set_are_those_of_copied_blocks(
    objective: Objective, block: int, digits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "BUCKETS", 16)  # several scores in each
    monkeypatch.setattr(bootstrap, "CELLS", 1500)  # several resamples at a time, and several times
    head = replace(head_of(6, 50, block=block, digits=digits), objective=objective)
    thresholds = chosen_on_copies(head, 60)
    found = certainty(head, 60)
    low, high = np.quantile(thresholds, [0.025, 0.975], method="nearest")
    assert found.interval == Interval(low, high, groups=6, resamples=len(thresholds))

    def value(threshold: float) -> float:
        on = np.flatnonzero(head.scores >= threshold)
        hits, positives = int(head.targets[on].sum()), int(head.targets.sum())
        assert head.quiet is not None
        if objective is ACCURACY_COVERAGE:
            return hits / len(head.scores)
        f1 = 2 * hits / (len(on) + positives)
        return f1 if objective is F1 else f1 - 0.5 * int(head.quiet[on].sum()) / int(head.quiet.sum())

    best = value(exact_optimum(head).threshold)
    level = 2 * NormalDist().cdf(math.sqrt(6 / 5) * T_5) - 1
    regret = np.sort([best - value(threshold) for threshold in thresholds])[int(np.ceil(level * (len(thresholds) - 1)))]
    assert found.regret_set is not None
    assert found.regret_set.regret == pytest.approx(regret, abs=1e-12)
    assert found.least_gain == max(LEAST_GAIN, found.regret_set.regret)
    middles = (np.append(0.0, np.unique(head.scores)) + np.append(np.unique(head.scores), 1.0)) / 2
    inside = [middle for middle in middles if best - value(middle) <= regret + 1e-12]
    ends = [middle for middle in middles if found.regret_set.low < middle < found.regret_set.high]
    assert (ends[0], ends[-1]) == (inside[0], inside[-1])
    for end in (found.regret_set.low, found.regret_set.high):
        assert best - value(end) <= regret + 1e-12


@pytest.mark.parametrize(("groups", "t"), [(2, 12.7062), (6, T_5), (8, 2.36462), (31, 2.04227)])
def test_few_groups_widen_the_regret_as_students_t_does(groups: int, t: float) -> None:
    expected = 2 * NormalDist().cdf(math.sqrt(groups / (groups - 1)) * t) - 1
    assert widened(groups) == pytest.approx(expected, abs=1e-6)
    assert widened(100_000) == pytest.approx(0.95, abs=1e-4)


@pytest.mark.behaviour("threshold-interval-holds-best")
@pytest.mark.parametrize("seed", range(6))
def test_with_8_sessions_the_interval_and_the_regret_set_hold_the_optimum(seed: int) -> None:
    head = head_of(8, 400, seed, block=100, digits=9)
    best, found = exact_optimum(head).threshold, certainty(head, 300)
    assert found.interval is not None
    assert found.regret_set is not None
    assert found.interval.low <= best <= found.interval.high
    assert found.regret_set.low <= best <= found.regret_set.high


def test_few_sessions_have_no_interval_and_a_regret_set_of_their_blocks() -> None:
    few, enough = (certainty(head_of(sessions, 200, block=20), 200) for sessions in (4, 5))
    assert (few.groups, few.interval, enough.groups) == (4, None, 5)
    assert enough.interval is not None
    assert few.regret_set is not None
    one = replace(head_of(1, 300, block=20))
    assert certainty(one, 200).regret_set is not None
    whole = certainty(replace(one, blocks=None), 200)
    assert (whole.interval, whole.regret_set, whole.least_gain) == (None, None, LEAST_GAIN)


def test_sessions_that_disagree_widen_the_interval() -> None:
    alike, unlike = (certainty(head_of(8, 400, shift=shift)).interval for shift in (0.0, 3.0))
    assert alike is not None
    assert unlike is not None
    assert unlike.high - unlike.low > 3 * (alike.high - alike.low)


def test_it_is_the_same_every_time() -> None:
    head = head_of(10, 200, block=50)
    assert certainty(head, 100) == certainty(head, 100)


@pytest.mark.parametrize("wanted", [True, False])
def test_positives_or_negatives_of_one_session_alone_have_no_interval(wanted: bool) -> None:
    """All resamples would have the same ones, and an interval of them would look surer than it is."""
    head = head_of(10, 30)
    lonely = head.targets & (head.groups == 0)
    found = certainty(replace(head, targets=lonely == wanted), 200)
    assert (found.interval, found.lonely) == (None, "positives" if wanted else "negatives")
    shared = head.targets & (head.groups <= 7)
    interval = certainty(replace(head, targets=shared == wanted), 200).interval
    assert interval is not None
    assert 150 < interval.resamples < 200  # one in ten draws neither of the two


def test_sessions_that_agree_leave_no_doubt() -> None:
    """A no at .2 and a yes at .8 in each: whatever is drawn, the threshold is halfway."""
    scores, targets = np.array([0.2, 0.8] * 5), np.array([False, True] * 5)
    head = Head("x", F1, scores, targets, np.repeat(np.arange(5), 2))
    found = certainty(head)
    assert found.interval == Interval(low=0.5, high=0.5, groups=5, resamples=1000)
    assert found.regret_set is not None
    assert (found.regret_set.low, found.regret_set.high) == (np.nextafter(0.2, 1), 0.8)
    assert (found.regret_set.regret, found.least_gain) == (0.0, LEAST_GAIN)


def test_scores_without_end_are_resampled_too() -> None:
    head = head_of(6, 20)
    scores = head.scores.copy()
    scores[::7], scores[1::9] = -np.inf, np.inf
    endless = replace(head, scores=scores)
    found = certainty(endless, 40)
    low, high = np.quantile(chosen_on_copies(endless, 40), [0.025, 0.975], method="nearest")
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (low, high)
    assert exact_optimum(endless) == Sweep(scores, head.targets, head.quiet).optimum(head.objective)


def test_many_rows_are_resampled_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "WORK", 300 * 1600)
    found = [certainty(head_of(8, frames)).interval for frames in (200, 400)]
    assert [interval and interval.resamples for interval in found] == [300, 200]


def test_blocks_are_counted_inside_each_group() -> None:
    groups = np.array([5, 5, 2, 5, 2, 5, 5, 2])
    assert blocks_of(groups, 2).tolist() == [0, 0, 0, 1, 0, 1, 2, 1]
    assert blocks_of(groups[:0], 2).tolist() == []
