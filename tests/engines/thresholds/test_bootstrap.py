"""Intervals equal a resampling that copies whole sessions and searches anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.thresholds.bootstrap import SEED, Interval, group_interval
from engines.thresholds.head import Head
from engines.thresholds.objectives import F1, F1_LESS_ALARMS
from engines.thresholds.search import exact_optimum


def head_of(sessions: int, frames: int, seed: int = 3, shift: float = 0.0) -> Head:
    """`shift` moves the scores of every second session."""
    random = np.random.default_rng(seed)
    n = sessions * frames
    groups = np.repeat(np.arange(sessions), frames) * 7  # any numbers name a session
    targets = random.random(n) < 0.3
    logits = random.normal(size=n) + 2 * targets - 1 + shift * (groups // 7 % 2)
    scores = np.round(1 / (1 + np.exp(-logits)), 2)
    return Head("x", F1_LESS_ALARMS, scores, targets, groups, (random.random(n) < 0.3) & ~targets)


def test_the_interval_is_that_of_copied_sessions() -> None:
    head, resamples = head_of(5, 30), 40
    weights = np.random.default_rng(SEED).multinomial(5, np.full(5, 0.2), size=resamples)
    assert head.quiet is not None
    thresholds = []
    for weight in weights:
        rows = np.concatenate([np.flatnonzero(head.groups == 7 * k) for k in np.repeat(np.arange(5), weight)])
        copied = replace(
            head, scores=head.scores[rows], targets=head.targets[rows], groups=head.groups[rows], quiet=head.quiet[rows]
        )
        thresholds.append(exact_optimum(copied).threshold)
    interval = group_interval(head, resamples)
    assert interval is not None
    assert (interval.groups, interval.resamples) == (5, resamples)
    # cuts are those of all sessions, so the middle of a copy's plateau may lie elsewhere between two of its scores
    expected = np.quantile(thresholds, [0.025, 0.975], method="nearest")
    assert [interval.low, interval.high] == pytest.approx(expected, abs=0.02)


def test_sessions_that_disagree_widen_the_interval() -> None:
    alike, unlike = group_interval(head_of(8, 400)), group_interval(head_of(8, 400, shift=3.0))
    assert alike is not None
    assert unlike is not None
    assert unlike.high - unlike.low > 3 * (alike.high - alike.low)


def test_it_is_the_same_every_time_and_holds_the_threshold() -> None:
    head = head_of(10, 200)
    first = group_interval(head)
    assert first == group_interval(head)
    assert first is not None
    assert first.low <= exact_optimum(head).threshold <= first.high


def test_more_scores_than_cuts_give_nearly_the_same() -> None:
    head = head_of(10, 400)
    fine = replace(head, scores=head.scores + np.linspace(0, 1e-6, len(head.scores)))  # all distinct
    coarse, quantiles = group_interval(head, 200), group_interval(fine, 200)
    assert coarse is not None
    assert quantiles is not None
    assert [quantiles.low, quantiles.high] == pytest.approx([coarse.low, coarse.high], abs=0.02)


def test_one_session_has_no_interval() -> None:
    assert group_interval(replace(head_of(3, 20), groups=np.zeros(60, np.int64))) is None


@pytest.mark.parametrize("wanted", [True, False])
def test_positives_or_negatives_of_one_session_alone_have_no_interval(wanted: bool) -> None:
    """All resamples would have the same ones, and an interval of them would look surer than it is."""
    head = head_of(10, 30)
    lonely = head.targets & (head.groups == 0)
    assert group_interval(replace(head, targets=lonely == wanted)) is None
    shared = head.targets & (head.groups <= 7)
    interval = group_interval(replace(head, targets=shared == wanted), 200)
    assert interval is not None
    assert 150 < interval.resamples < 200  # one in ten draws neither of the two


def test_sessions_that_agree_leave_no_doubt() -> None:
    """A no at .2 and a yes at .8 in each: whatever is drawn, the threshold is halfway."""
    scores, targets = np.array([0.2, 0.8] * 3), np.array([False, True] * 3)
    head = Head("x", F1, scores, targets, np.array([0, 0, 1, 1, 2, 2]))
    assert group_interval(head) == Interval(low=0.5, high=0.5, groups=3, resamples=1000)
