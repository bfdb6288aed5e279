"""Rewards: a death once per lost bar, masks where the rule cannot judge, and a slow reading of the rule beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from projects.agent.rewards import Rewards, deaths, rewards
from tests.projects.agent.recorded import features_of

Bools = NDArray[np.bool_]


def bars(text: str) -> NDArray[np.float64]:
    """`1` where there is a bar, `0` where there is none."""
    return np.array([[40.0, 50.0] if letter == "1" else [np.nan, np.nan] for letter in text])


def of(text: str, **columns: Any) -> Rewards:
    return rewards(features_of(range(len(text)), bar=bars(text), **columns))


def test_b6_a_lost_bar_is_one_death_of_minus_10_and_not_three() -> None:
    text = "1111111100000000000000000000000011111111"
    found = of(text)
    assert np.flatnonzero(found.death).tolist() == [8]
    assert found.reward.sum() == pytest.approx(-10)
    assert np.flatnonzero(found.event).tolist() == [8]


def test_b6_a_bar_that_flickers_is_no_death_and_a_second_one_needs_20_frames() -> None:
    assert not of("11111111011111101111111111").death.any()
    soon = "11111111" + "000" + "1" * 16 + "0000" + "1" * 8
    late = "11111111" + "000" + "1" * 17 + "0000" + "1" * 8
    assert np.flatnonzero(of(soon).death).tolist() == [8]
    assert np.flatnonzero(of(late).death).tolist() == [8, 28]


def test_b17_the_first_5_frames_and_the_last_3_are_not_judged() -> None:
    found = of("1110000000000000" + "1" * 10 + "00", gold=np.full(28, 20.0))
    assert np.flatnonzero(found.known).tolist() == list(range(5, 25))
    assert not found.death.any()
    assert found.reward[~found.known].tolist() == [0] * 8
    assert found.reward[5:25] == pytest.approx(0.2)
    assert np.flatnonzero(found.event).tolist() == list(range(5, 25))


def test_frames_around_a_gap_are_not_judged() -> None:
    number = [*range(10), *range(12, 30)]
    found = rewards(features_of(number, bar=bars("1" * 11 + "0" * 17)))
    assert [number[row] for row in np.flatnonzero(found.known)] == [5, 6, *range(17, 27)]
    assert not found.death.any()


def test_an_event_is_a_gold_step_of_10_or_a_death() -> None:
    gold = np.zeros(20)
    gold[6:10] = [1.0, 9.9, 10.0, 400.0]
    found = of("1" * 20, gold=gold)
    assert np.flatnonzero(found.event).tolist() == [8, 9]
    assert found.reward[6:10] == pytest.approx([0.01, 0.099, 0.1, 4.0])


def slowly(present: Bools, there: Bools) -> Bools:
    """The rule, frame by frame."""
    died, lost = np.zeros(len(present), bool), np.zeros(len(present), bool)
    for t in range(len(present)):
        before = sum(present[k] and there[k] for k in range(max(0, t - 5), t))
        after = sum(there[k] and not present[k] for k in range(t + 1, min(len(present), t + 4)))
        lost[t] = there[t] and not present[t] and before >= 3 and after >= 2
        died[t] = lost[t] and not (t and lost[t - 1]) and not died[max(0, t - 19) : t].any()
    return died


@pytest.mark.parametrize("seed", range(8))
def test_deaths_are_those_of_the_rule_read_slowly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    present = np.repeat(rng.random(200) < 0.6, rng.integers(1, 9, 200))
    present ^= rng.random(len(present)) < 0.05
    there = rng.random(len(present)) < 0.97
    found = deaths(present, there)
    assert found.tolist() == slowly(present, there).tolist()
    assert found.sum() > 3
