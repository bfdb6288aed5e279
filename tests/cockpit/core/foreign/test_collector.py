"""Rows become series: one value a step in force, what a restart superseded beside it."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from cockpit.core.foreign.collector import MOST_BRANCHES, Collector
from cockpit.core.foreign.rows import Row, row_of
from tests.cockpit.core.foreign.reading import points

NAN = math.nan


def slowly(logged: list[tuple[int, float]]) -> tuple[list[tuple[int, float]], list[list[tuple[int, float]]]]:
    """In force and old branches by the rule as it is told: every row looks at all that came before."""
    kept: list[tuple[int, float]] = []
    old = []
    again: list[tuple[int, float]] = []

    def put(step: int, value: float) -> None:
        nonlocal kept
        if kept and step == kept[-1][0]:
            kept.pop()
        elif tail := [point for point in kept if point[0] >= step]:
            old.append(tail)
            kept = [point for point in kept if point[0] < step]
        kept.append((step, value))

    for step, value in logged:
        if kept and step < kept[-1][0] and (step, value) in kept:
            again.append((step, value))
            continue
        if kept and step <= kept[-1][0]:
            for earlier in again:
                if earlier[0] < step:
                    put(*earlier)
        again = []
        put(step, value)
    return kept, old


@given(st.lists(st.tuples(st.integers(0, 12), st.floats(allow_nan=False)), max_size=40))
def test_series_are_what_the_rule_says(logged: list[tuple[int, float]]) -> None:
    collector = Collector()
    collector.add(Row({"m": value}, step=float(step)) for step, value in logged)
    kept, old = slowly(logged)
    series = collector.series()
    assert (points(series["m"]) if series else []) == kept
    branches = [list(zip(*branch, strict=True)) for branch in series["m"].old] if series else []
    assert branches == old


def test_each_metric_goes_by_its_own_steps() -> None:
    collector = Collector()
    collector.add([Row({"batch": 1.0}, step=100.0), Row({"epoch": 2.0}, step=1.0), Row({"batch": 3.0}, step=101.0)])
    series = collector.series()
    assert points(series["batch"]) == [(100.0, 1.0), (101.0, 3.0)]
    assert points(series["epoch"]) == [(1.0, 2.0)]
    assert not any(one.old for one in series.values())


def test_a_log_of_epochs_restarts_by_its_epochs() -> None:
    collector = Collector()
    collector.add(Row({"m": float(value)}, epoch=float(epoch)) for value, epoch in enumerate([1, 2, 3, 2, 3, 4]))
    series = collector.series()["m"]
    assert points(series, "epoch") == [(1.0, 0.0), (2.0, 3.0), (3.0, 4.0), (4.0, 5.0)]
    assert [(steps.tolist(), values.tolist()) for steps, values in series.old] == [([2.0, 3.0], [1.0, 2.0])]


def test_rows_without_any_place_are_numbered() -> None:
    collector = Collector()
    collector.add([Row({"m": 5.0}), Row({}), Row({"m": 5.0})])
    assert points(collector.series()["m"]) == [(0.0, 5.0), (1.0, 5.0)]


def test_a_step_that_can_be_none_is_none() -> None:
    collector = Collector()
    collector.add([Row({"m": 1.0}, step=math.inf), Row({"m": 2.0}, step=1e300, epoch=3.0)])
    assert points(collector.series()["m"]) == [(0.0, 1.0), ("nan", 2.0)]


def test_another_value_at_the_same_step_is_told_and_the_same_one_is_not() -> None:
    collector = Collector()
    rows = [Row({"a": 1.0, "b": NAN}, step=1.0), Row({"a": 1.0, "b": NAN}, step=1.0)]
    collector.add(rows)
    assert collector.problems() == []
    collector.add([Row({"a": 2.0}, step=1.0)])
    assert collector.problems() == ["1 values were logged twice at the same step; the later one counts."]
    assert points(collector.series()["a"]) == [(1.0, 2.0)]


def test_branches_without_end_are_bounded_and_told() -> None:
    collector = Collector()
    collector.add(Row({"m": float(n)}, step=float(step)) for n in range(MOST_BRANCHES + 11) for step in (1, 2))
    assert len(collector.series()["m"].old) == MOST_BRANCHES
    assert collector.problems() == ["Steps go back so often that 10 old branches were dropped."]


def test_series_handed_out_do_not_change() -> None:
    collector = Collector()
    collector.add([Row({"m": 1.0}, step=1.0)])
    before = collector.series()["m"]
    collector.add([Row({"m": 2.0}, step=2.0)])
    assert (points(before), len(collector.series()["m"].value)) == ([(1.0, 1.0)], 2)
    assert not before.value.flags.writeable


def test_names_of_places_groups_and_durations() -> None:
    row = row_of({"global_step": 3, "epoch": 0.5, "timestamp": 1.7e9, "train/loss": 2, "seed": 1, "a": {"b": {"c": 4}}})
    assert (row.step, row.epoch, row.time) == (3.0, 0.5, 1.7e9)
    assert row.values == {"train/loss [seed 1]": 2.0, "a.b.c [seed 1]": 4.0}
    assert row_of({"step": 1, "time": 12.5}).values == {"time": 12.5}  # seconds since the start: a metric
