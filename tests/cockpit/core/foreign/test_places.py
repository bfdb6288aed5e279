"""Steps, epochs and times by whatever names and in whatever units logs tell them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.core.foreign.collector import Collector
from cockpit.core.foreign.rows import Row, row_of
from tests.cockpit.core.foreign.reading import points, read

COUNTED_ANEW = "Steps restart in every epoch: each epoch is placed after the one before."


def collected(rows: Iterable[Row]) -> Collector:
    collector = Collector()
    collector.add(rows)
    return collector


@pytest.mark.behaviour("other-programs-logs-steps")
@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(1, 50), st.sampled_from([0, 1]))
def test_steps_that_count_again_in_every_epoch_go_on(lengths: Sequence[int], stride: int, first: int) -> None:
    """The same loop with one counter from start to end would have logged this."""
    lengths = [2, *lengths]  # the first epoch shows how far apart steps are logged
    steps = [(place + first) * stride for length in lengths for place in range(length)]
    epochs = [epoch for epoch, length in enumerate(lengths) for _ in range(length)]
    collector = collected(
        Row({"loss": float(n)}, step=float(step), epoch=float(epoch))
        for n, (step, epoch) in enumerate(zip(steps, epochs, strict=True))
    )
    series = collector.series()["loss"]
    assert points(series) == [(float((n + first) * stride), float(n)) for n in range(len(steps))]
    assert series.old == ()
    assert (COUNTED_ANEW in collector.problems()) == (len(lengths) > 1)


def test_a_restart_among_such_epochs_supersedes_from_its_epoch_on() -> None:
    rows = [(epoch, step) for epoch in (1, 2, 3) for step in range(3)]
    rows += [(2, 0), (2, 1)]
    collector = collected(Row({"m": float(n)}, step=float(s), epoch=float(e)) for n, (e, s) in enumerate(rows))
    series = collector.series()["m"]
    assert points(series) == [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (3.0, 9.0), (4.0, 10.0)]
    assert [(steps.tolist(), values.tolist()) for steps, values in series.old] == [
        ([3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    ]


def test_epochs_of_one_step_each_lose_no_point() -> None:
    rows = [Row({"m": float(epoch)}, step=0.0, epoch=float(epoch)) for epoch in range(4)]
    assert points(collected(rows).series()["m"]) == [(float(n), float(n)) for n in range(4)]


def test_a_step_shared_by_the_end_of_an_epoch_and_the_next_ones_beginning_moves_nothing() -> None:
    rows = [Row({"m": 1.0}, step=0.0, epoch=0.0), Row({"m": 2.0}, step=9.0, epoch=0.0)]
    rows += [Row({"val": 3.0}, step=10.0, epoch=0.0), Row({"m": 4.0}, step=10.0, epoch=1.0)]
    collector = collected(rows)
    assert points(collector.series()["m"]) == [(0.0, 1.0), (9.0, 2.0), (10.0, 4.0)]
    assert collector.problems() == []


def test_runs_that_take_turns_in_one_file_are_counted_apart() -> None:
    rows = [
        row_of({"seed": seed, "epoch": epoch, "step": 10 * epoch + lead, "loss": epoch})
        for epoch in range(3)
        for seed, lead in ((1, 7), (2, 0))
    ]
    series = collected(rows).series()
    assert points(series["loss [seed 1]"]) == [(7.0, 0.0), (17.0, 1.0), (27.0, 2.0)]
    assert points(series["loss [seed 2]"]) == [(0.0, 0.0), (10.0, 1.0), (20.0, 2.0)]


@pytest.mark.behaviour("other-programs-logs-steps")
def test_an_epochs_values_stand_at_the_last_step_before_them() -> None:
    """Training told by steps, validation by epochs: on the axis of steps both are there, also when imported."""
    rows = [Row({"loss": 1.0}, step=0.0), Row({"val": 5.0}, epoch=1.0), Row({"test": 7.0}, epoch=1.0)]
    rows += [Row({"val": 4.0}, epoch=2.0), Row({"loss": 0.5}, step=100.0), Row({"val": 3.0}, epoch=3.0)]
    series = collected(rows).series()
    assert points(series["val"]) == [(0.0, 5.0), (1.0, 4.0), (100.0, 3.0)]
    assert points(series["test"]) == [(0.0, 7.0)]
    assert points(series["val"], "epoch") == [(1.0, 5.0), (2.0, 4.0), (3.0, 3.0)]
    again = collected([*rows, Row({"val": 2.0}, epoch=2.0)]).series()["val"]
    assert points(again) == [(0.0, 5.0), (1.0, 2.0)]
    assert len(again.old) == 1


def test_a_result_without_any_place_stands_at_the_end_of_its_log() -> None:
    rows = [Row({"loss": 1.0}, step=0.0), Row({"loss": 0.5}, step=90.0), Row({"acc": 0.7}), Row({"acc": 0.8})]
    assert points(collected(rows).series()["acc"]) == [(90.0, 0.7), (91.0, 0.8)]


@pytest.mark.behaviour("other-programs-logs-steps")
@pytest.mark.parametrize(
    ("header", "row", "place"),
    [
        ("Wall time,Step,Value", "1.7e9,300,5", ("step", 300.0)),
        ('"Step","run - loss"', '"50","5"', ("step", 50.0)),
        ("Epoch,Loss", "3,5", ("epoch", 3.0)),
        ("time/total_timesteps,reward", "4096,5", ("step", 4096.0)),
        ("step,global_step,loss", "7,1207,5", ("step", 1207.0)),
        ("global_step,step,loss", "1207,7,5", ("step", 1207.0)),
        ("epoch;loss", "3;5,0", ("epoch", 3.0)),
    ],
)
def test_places_are_known_by_the_names_that_loggers_give_them(
    header: str, row: str, place: tuple[str, float], tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_text(f"{header}\n{row}\n")
    series = list(read(tmp_path / "log.csv").series().values())[-1]
    assert series.value.tolist() == [5.0]
    assert getattr(series, place[0]).tolist() == [place[1]]


MOMENT = 1_767_225_600.0  # 2026-01-01T00:00:00Z


@pytest.mark.parametrize(
    "written",
    [MOMENT, MOMENT * 1e3, MOMENT * 1e6, MOMENT * 1e9, str(MOMENT), "2026-01-01T00:00:00Z", "2026-01-01 00:00:00,000",
     "2026-01-01T01:00:00+01:00"],
)  # fmt: skip
def test_moments_are_seconds_in_whatever_way_they_are_written(written: object) -> None:
    row = row_of({"timestamp": written, "loss": 1})
    assert row.values == {"loss": 1.0}
    assert row.time == pytest.approx(MOMENT)


def test_a_duration_and_a_word_are_no_moments() -> None:
    assert row_of({"time": 12.5, "loss": 1}).values == {"time": 12.5, "loss": 1.0}
    assert math.isnan(row_of({"time": "noon", "loss": 1}).time)


def test_numbers_in_words_are_numbers() -> None:
    row = row_of({"step": "12", "loss": "3.5e-1", "grad": "-.5", "run": "12ab", "host": "10.0.0.1", "id": "1_000"})
    assert (row.step, row.values) == (12.0, {"loss": 0.35, "grad": -0.5})


def test_remarks_above_a_header_and_a_byte_order_mark_cost_no_row(tmp_path: Path) -> None:
    remarked, marked = tmp_path / "remarked.csv", tmp_path / "marked.jsonl"
    remarked.write_text("# made on Monday\nr,l\n20,11\n30,12\n")
    marked.write_bytes(b"\xef\xbb\xbf" + b"".join(json.dumps({"step": n, "m": n}).encode() + b"\n" for n in range(2)))
    assert [(one.kind, one.problems()) for one in map(read, (remarked, marked))] == [("CSV", []), ("JSON lines", [])]
    assert read(remarked).series()["r"].value.tolist() == [20.0, 30.0]
    assert points(read(marked).series()["m"]) == [(0.0, 0.0), (1.0, 1.0)]
