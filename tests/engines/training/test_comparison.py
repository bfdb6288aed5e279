"""A run beside its baselines: every value as given, every loss named, skill as a share of the error."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.training.comparison import LOSES, STRONGEST, WORSE, comparison, skill

PERFECT = {"accuracy": 1.0, "error": 0.0, "return": None}
RUN = {"accuracy": 0.8, "error": 2.0, "return": 5.0, "other": 1.0}
BASELINES = {
    "still": {"accuracy": 0.9, "error": 4.0, "return": 5.0},
    "random": {"accuracy": 0.2, "error": 1.0, "return": 9.0},
}


def test_the_run_stands_first_and_each_row_says_what_it_is_better_in() -> None:
    table = comparison(RUN, BASELINES, PERFECT, bounds={"ceiling": {"accuracy": 1.0}}, title="who", note="On 3 games.")
    assert table.columns == ("who", "accuracy", "error", "return", LOSES)
    rows: list[Any] = list(table.rows)
    assert rows == [
        ("this run", 0.8, 2.0, 5.0, ""),
        ("still", 0.9, 4.0, 5.0, "accuracy"),
        ("random", 0.2, 1.0, 9.0, "error, return"),
        ("ceiling", 1.0, None, None, ""),
        ("skill over still", pytest.approx(-1.0), 0.5, None, ""),
        ("skill over random", pytest.approx(0.75), -1.0, None, ""),
        (STRONGEST, pytest.approx(-1.0), -1.0, None, ""),
        (WORSE, "✗ still", "✗ random", "✗ random", ""),
    ]
    assert table.note.startswith("On 3 games. Skill:")


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_what_cannot_be_compared_is_neither_lost_nor_won(value: float | None) -> None:
    table = comparison({"error": value}, {"still": {"error": 1.0}, "gone": {"error": value}}, {"error": 0.0})
    assert {row[2] for row in table.rows} == {""}
    gone = () if value is None else (("skill over gone", None, ""),)  # without any value there is nothing to be over
    assert table.rows[3:] == (("skill over still", None, ""), *gone, (STRONGEST, None, ""), (WORSE, "", ""))


def test_the_mark_names_the_best_of_those_that_win_and_nothing_where_the_run_does() -> None:
    baselines: dict[str, dict[str, float | None]] = {
        "a": {"x": 3.0, "y": 1.0},
        "b": {"x": 1.0, "y": 1.0},
        "c": {"x": 2.0, "y": None},
        "d": {},
    }
    table = comparison({"x": 2.5, "y": 1.0}, baselines, {"x": 0.0, "y": 0.0})
    assert table.rows[-2:] == ((STRONGEST, -1.5, 0.0, ""), (WORSE, "✗ b", "", ""))


def test_over_a_baseline_without_error_there_is_no_skill() -> None:
    assert skill(0.5, 0.0, 0.0) is None
    assert skill(0.0, 0.5, 0.0) == 1


@given(st.integers(0, 100), st.integers(0, 99))
def test_skill_is_below_zero_where_the_run_loses(right: int, others: int) -> None:
    run, baseline = right / 100, others / 100
    found = skill(run, baseline, 1.0)
    assert found is not None
    assert baseline + found * (1 - baseline) == pytest.approx(run)  # so much of what is left to be perfect
    table = comparison({"a": run}, {"b": {"a": baseline}}, {"a": 1.0})
    assert (table.rows[1][2] == "a") == (run < baseline)
