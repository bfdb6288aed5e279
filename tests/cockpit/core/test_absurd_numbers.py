"""Records that parse and hold what no run can hold: they are told as that, and nothing waits for ever."""

import math

import numpy as np
import pytest

from cockpit.core.metrics.steps import WIDE, Steps
from cockpit.core.table.rows import StepRow, step_rows
from cockpit.core.times import clock, date_and_clock, zone
from engines.basics.amounts import duration, short_duration


@pytest.mark.behaviour("numbers-parse-run-can")
@pytest.mark.parametrize("moment", [1e308, -1e308, 1e18, math.inf, math.nan])
def test_what_is_no_moment_is_a_question_mark(moment: float) -> None:
    assert clock(moment) == date_and_clock(moment) == zone(moment) == "?"


@pytest.mark.parametrize("seconds", [1e308, 1e18, math.inf, math.nan])
def test_what_is_no_duration_is_a_question_mark(seconds: float) -> None:
    assert duration(seconds) == short_duration(seconds) == "?"


def logged_steps(numbers: list[float]) -> Steps:
    table = np.full((len(WIDE), len(numbers)), 0.5)
    table[WIDE.index("step")] = numbers
    table[WIDE.index("loss")] = np.arange(len(numbers))
    return Steps(table)


def slow_rows(numbers: list[float], done: int, stop: int, every: int) -> list[StepRow]:
    """One multiple after another, every record looked at."""
    made = []
    for step in range((done // every + 1) * every, stop, every):
        losses = [place for place, number in enumerate(numbers) if max(step - every, done) <= number < step]
        if losses:
            made.append(StepRow(step, sum(losses) / len(losses), 0.5))
    return made


def test_rows_of_steps_are_those_of_the_slow_way() -> None:
    chance = np.random.default_rng(5)
    for _ in range(200):
        numbers = sorted(map(float, chance.choice(60, size=int(chance.integers(1, 30)), replace=False)))
        done, every = int(chance.integers(0, 40)), int(chance.integers(1, 12))
        stop = done + int(chance.integers(0, 40))
        assert step_rows(logged_steps(numbers), done, stop, every) == slow_rows(numbers, done, stop, every)


@pytest.mark.behaviour("numbers-parse-run-can")
def test_a_step_of_any_size_costs_as_many_rows_as_there_are_steps() -> None:
    rows = step_rows(logged_steps([0.0, 1.0, 2.0, 1e300]), 0, 2**1000, 2)
    assert [row.step for row in rows[:2]] == [2, 4]
    assert len(rows) == 3
