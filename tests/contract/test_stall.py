"""Stalls: how long a silence is waited for in each phase, and when one is over."""

from __future__ import annotations

import pytest

from engines.runs.stall import StallRule


def silence_until_told(phase: str, usual: float, *, seconds: float = 5.0) -> float:
    """Seconds of silence after fifty signs of life `usual` seconds apart."""
    rule = StallRule()
    for sign in range(50):
        for _ in range(max(1, round(usual / seconds))):
            assert rule.feed(phase, sign, min(seconds, usual)) is None
    while rule.feed(phase, 49, seconds) is None:
        assert rule.silence < 1e5
    return rule.silence


@pytest.mark.behaviour("run-hangs-while-process")
@pytest.mark.parametrize(
    ("phase", "usual", "told"),
    [
        ("training", 1, 120),
        ("training", 60, 600),
        ("evaluating", 30, 900),
        ("evaluating", 200, 2000),
        ("saving", 5, 600),
    ],
)
def test_a_stall_is_told_after_ten_times_what_is_usual_and_no_sooner_than_its_phase_allows(
    phase: str, usual: float, told: float
) -> None:
    assert silence_until_told(phase, usual) == pytest.approx(told, rel=0.1)


def test_the_first_of_its_kind_may_take_half_an_hour() -> None:
    """Slow steps come in blocks: until the first is there nobody knows how long one takes."""
    rule = StallRule()
    told = [rule.feed("training", 0, 5) is not None for _ in range(400)]
    assert told.index(True) * 5 == 1800


def test_three_times_the_longest_silence_of_late_is_waited_for() -> None:
    rule = StallRule()
    for sign in (0, 1, 2, 3, *([4] * 20), 5):  # five seconds each, and one of a hundred
        assert rule.feed("training", sign, 5) is None
    assert rule.patience("training") == 300
    for sign in range(6, 6 + 20):
        rule.feed("training", sign, 5)
    assert rule.patience("training") == 120  # of the last twenty it was none


@pytest.mark.behaviour("run-hangs-while-process")
def test_a_pause_is_no_stall_and_a_stall_is_over_with_the_next_step() -> None:
    rule = StallRule()
    rule.feed("training", 1, 5)
    assert not any(rule.feed("paused", 1, 5) for _ in range(10_000))
    assert not any(rule.feed("training", 2, 5) for _ in range(24))
    finding = rule.feed("training", 2, 5)
    assert finding is not None
    assert "no sign of life for 2 m 00 s in training" in finding.text
    assert rule.feed("training", 3, 5) is None
    assert rule.patience("training") == 120  # what was told does not become usual
