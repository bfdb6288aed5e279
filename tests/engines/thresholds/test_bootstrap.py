"""Intervals equal a resampling that copies whole sessions and searches anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.thresholds.bootstrap import SEED, session_interval
from engines.thresholds.head import Head
from engines.thresholds.objectives import F1_LESS_IDLE
from engines.thresholds.search import exact_optimum


def head_of(sessions: int, frames: int, seed: int = 3, shift: float = 0.0) -> Head:
    """`shift` moves the scores of every second session."""
    random = np.random.default_rng(seed)
    n = sessions * frames
    groups = np.repeat(np.arange(sessions), frames) * 7  # any numbers name a session
    targets = random.random(n) < 0.3
    logits = random.normal(size=n) + 2 * targets - 1 + shift * (groups // 7 % 2)
    scores = np.round(1 / (1 + np.exp(-logits)), 2)
    return Head("x", F1_LESS_IDLE, scores, targets, groups, (random.random(n) < 0.3) & ~targets)


def test_the_interval_is_that_of_copied_sessions() -> None:
    head, resamples = head_of(5, 30), 40
    weights = np.random.default_rng(SEED).multinomial(5, np.full(5, 0.2), size=resamples)
    assert head.idle is not None
    thresholds = []
    for weight in weights:
        rows = np.concatenate([np.flatnonzero(head.groups == 7 * k) for k in np.repeat(np.arange(5), weight)])
        copied = replace(
            head, scores=head.scores[rows], targets=head.targets[rows], groups=head.groups[rows], idle=head.idle[rows]
        )
        thresholds.append(exact_optimum(copied).threshold)
    interval = session_interval(head, resamples)
    assert interval is not None
    assert (interval.sessions, interval.resamples) == (5, resamples)
    # cuts are those of all sessions, so the middle of a copy's plateau may lie elsewhere between two of its scores
    expected = np.quantile(thresholds, [0.025, 0.975], method="nearest")
    assert [interval.low, interval.high] == pytest.approx(expected, abs=0.02)


def test_sessions_that_disagree_widen_the_interval() -> None:
    alike, unlike = session_interval(head_of(8, 400)), session_interval(head_of(8, 400, shift=3.0))
    assert alike is not None
    assert unlike is not None
    assert unlike.high - unlike.low > 3 * (alike.high - alike.low)


def test_it_is_the_same_every_time_and_holds_the_threshold() -> None:
    head = head_of(10, 200)
    first = session_interval(head)
    assert first == session_interval(head)
    assert first is not None
    assert first.low <= exact_optimum(head).threshold <= first.high


def test_more_scores_than_cuts_give_nearly_the_same() -> None:
    head = head_of(10, 400)
    fine = replace(head, scores=head.scores + np.linspace(0, 1e-6, len(head.scores)))  # all distinct
    coarse, quantiles = session_interval(head, 200), session_interval(fine, 200)
    assert coarse is not None
    assert quantiles is not None
    assert [quantiles.low, quantiles.high] == pytest.approx([coarse.low, coarse.high], abs=0.02)


def test_one_session_has_no_interval() -> None:
    assert session_interval(replace(head_of(3, 20), groups=np.zeros(60, np.int64))) is None


def test_positives_of_one_session_among_many_have_no_interval() -> None:
    """Most resamples of two draws leave out the only session with positives, or hold it alone."""
    head = head_of(2, 30)
    lonely = replace(head, targets=head.targets & (head.groups == 0), scores=np.where(head.groups == 0, head.scores, 0))
    interval = session_interval(lonely)
    assert interval is None or interval.resamples >= 500
    nowhere = replace(head, targets=head.groups == 0)  # one session all positives, the other all negatives
    assert session_interval(nowhere) is not None
    assert session_interval(nowhere).resamples < 600  # type: ignore[union-attr]
