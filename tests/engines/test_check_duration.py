"""How long a run takes, worked out from the times of steps."""

from __future__ import annotations

import numpy as np
import pytest

from engines.checking.duration import ROUGH, StageTime, StepTimes, as_tried, cost_of, run_time
from engines.contract.settings import Cost

KNOWN = StepTimes(median=1.0, low=0.5, high=1.5, steps=50)
FEW = StepTimes.given(3.0)


def busy_steps(seed: int, count: int = 20_000) -> np.ndarray:
    """Steps on a machine that others use half of the time, in bursts of about 40 steps that are 2.5 times slower."""
    random = np.random.default_rng(seed)
    bursts = count // 10  # more than enough
    slow = np.repeat(np.arange(bursts) % 2 == 0, random.geometric(1 / 40, bursts))[:count]
    return np.where(slow, 2.5, 1.0) * random.lognormal(0, 0.15, count)


@pytest.mark.behaviour("check-range-covers-the-truth")
def test_the_range_of_a_rough_time_covers_the_truth_on_a_busy_machine() -> None:
    covered = 0
    for seed in range(200):
        steps = busy_steps(seed)
        stage = StageTime("train", 10, 2000, StepTimes.of(steps[:30]), StepTimes.of(steps[30:60]))
        time = run_time([stage], 0.0, "steps")
        covered += time["low"] <= steps.sum() <= time["high"]
    assert covered >= 195


@pytest.mark.behaviour("check-range-covers-the-truth")
@pytest.mark.parametrize(("validation", "save"), [(0.0, 0.0), (30.0, 5.0), (4000.0, 100.0)])
def test_epochs_are_steps_evaluation_and_save_and_a_try_covers_them(validation: float, save: float) -> None:
    """Most of what a try of some hundred steps says holds for the whole run, however much its epochs hold beside."""
    covered = 0
    for seed in range(100):
        steps = busy_steps(seed)
        stage = StageTime("train", 10, 2000, StepTimes.given(2.0), StepTimes.given(2.0))
        beside = 10 * (validation + save)
        time = run_time(as_tried([stage], StepTimes.of(steps[5:2000])), beside, "try")
        covered += time["low"] <= steps.sum() + beside <= time["high"]
        assert time["likely"] == pytest.approx(beside + 20_000 * np.median(steps[5:2000]))
    assert covered >= 95


def test_slow_first_steps_and_single_ones_do_not_count() -> None:
    steps = np.ones(100)
    steps[::20] = 50.0
    assert StepTimes.of(steps).median == 1.0


@pytest.mark.behaviour("check-range-covers-the-truth")
@pytest.mark.parametrize(("steps", "known"), [(29, False), (30, True)])
def test_fewer_than_thirty_steps_give_no_range(steps: int, known: bool) -> None:
    times = StepTimes.of(np.linspace(1.0, 2.0, steps))
    assert (times.low is not None, times.high is not None) == (known, known)
    assert times.median == pytest.approx(1.5)
    time = run_time([StageTime("train", 1, 10, times, times)], 5.0, "steps")
    assert (time["low"] is not None, time["high"] is not None) == (known, known)


def test_stages_are_added_by_their_epochs_and_a_curriculum_by_both_of_its_ends() -> None:
    easy = StageTime("easy", 2, 100, KNOWN, KNOWN)
    harder = StageTime("harder", 3, 50, KNOWN, KNOWN.scaled(4.0))
    time = run_time([easy, harder], 10.0, "try")
    assert time["likely"] == 10 + 2 * 100 * 1.0 + 3 * 50 * (1.0 + 4.0) / 2
    assert time["low"] == 10 + 2 * 100 * 0.5 + 3 * 50 * 0.5
    assert time["high"] == 10 + 2 * 100 * 1.5 + 3 * 50 * 6.0
    rough = run_time([easy, harder], 10.0, "steps")
    assert (rough["low"], rough["likely"], rough["high"]) == (time["low"] / ROUGH, time["likely"], time["high"] * ROUGH)
    assert rough["steps"] == 50
    assert run_time([easy, StageTime("few", 1, 1, KNOWN, FEW)], 0.0, "steps")["steps"] == 0
    given = run_time([StageTime("train", 2, 100, FEW, FEW)], 10.0, "given")
    assert (given["low"], given["likely"], given["high"]) == (None, 610.0, None)


def test_a_try_of_the_first_stage_says_how_long_the_others_take() -> None:
    """As many times as long as it took, and no less where a difference is only noise."""
    first = StageTime("first", 1, 1, KNOWN, KNOWN.scaled(1.1))
    last = StageTime("last", 1, 1, KNOWN.scaled(2.0), KNOWN.scaled(5.0))
    tried = StepTimes(median=0.1, low=0.08, high=0.2, steps=1000)
    one, other = as_tried([first, last], tried)
    assert (one.begin, one.end) == (tried, tried)
    assert [point.median for point in (other.begin, other.end)] == pytest.approx([0.2, 0.5])
    assert other.end.high == pytest.approx(1.0)


def test_a_cost_has_the_range_of_its_time() -> None:
    time = {"low": 3600.0, "likely": 7200.0, "high": None}
    cost = cost_of(time, Cost(usd_per_hour=7.0, budget_usd=3.0), 2.0)
    assert cost == {"low": 2.0, "likely": 4.0, "high": None, "usd_per_hour": 2.0, "budget": 3.0}
    assert cost_of(time, Cost(), 0.0) is None
