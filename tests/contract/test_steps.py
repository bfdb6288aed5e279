"""Logged steps: appended in segments, torn records cut off, one value a step however often the run was resumed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.contract.steps import StepWriter, read_segments, read_series


def records(*rows: tuple[float, ...]) -> np.ndarray:
    return np.array(rows, dtype=np.float64)


def write(folder: Path, columns: tuple[str, ...], *rows: tuple[float, ...]) -> None:
    writer = StepWriter(folder, columns)
    writer.append(records(*rows))
    writer.close()


@st.composite
def attempts(draw: st.DrawFn) -> list[list[int]]:
    """Steps that each attempt logged: every one goes on from some step at or before where the last one was."""
    lives: list[list[int]] = []
    at = 0
    for _ in range(draw(st.integers(1, 5))):
        first = draw(st.integers(0, at))
        length = draw(st.integers(1, 6))
        at = first + length
        lives.append(list(range(first, at)))
    return lives


@pytest.mark.behaviour("after-resume-older-checkpoint")
@settings(max_examples=50)
@given(attempts(), st.data())
def test_one_value_a_step_the_newest(lives: list[list[int]], data: st.DataObject) -> None:
    expected: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, steps in enumerate(lives, 1):
            columns = data.draw(st.sampled_from([("loss",), ("loss", "look")]))
            expected = {step: value for step, value in expected.items() if step < steps[0]}
            writer = StepWriter(folder, columns)
            for step in steps:
                value = 100 * number + step
                expected[step] = value
                writer.append(records((step, number, value, 0.0)[: 2 + len(columns)]))
            writer.close()
        found, values = read_series(folder, "loss")
    assert dict(zip(found.tolist(), values.tolist(), strict=True)) == expected
    assert found.tolist() == sorted(expected)


@pytest.mark.behaviour("header-middle-csv-file")
def test_a_new_segment_begins_only_when_the_columns_change(tmp_path: Path) -> None:
    write(tmp_path, ("loss",), (0, 1, 0.5))
    write(tmp_path, ("loss",), (1, 1, 0.4))
    write(tmp_path, ("loss", "look"), (2, 2, 0.3, 7.0))
    write(tmp_path, ("loss",), (3, 3, 0.2))
    found = [(columns, rows.tolist()) for columns, rows in read_segments(tmp_path)]
    assert found == [
        (["step", "attempt", "loss"], [[0, 1, 0.5], [1, 1, 0.4]]),
        (["step", "attempt", "loss", "look"], [[2, 2, 0.3, 7.0]]),
        (["step", "attempt", "loss"], [[3, 3, 0.2]]),
    ]
    assert read_series(tmp_path, "look")[1].tolist() == [7.0]
    assert read_series(tmp_path, "loss")[1].tolist() == [0.5, 0.4, 0.3, 0.2]


def test_more_than_nine_segments_stay_in_order(tmp_path: Path) -> None:
    for step in range(12):
        write(tmp_path, ("loss",) if step % 2 else ("loss", "look"), (step, 1, step, 0.0)[: 3 if step % 2 else 4])
    assert read_series(tmp_path, "loss")[0].tolist() == list(range(12))


def test_nothing_logged_is_an_empty_series(tmp_path: Path) -> None:
    StepWriter(tmp_path, ("loss",)).close()
    assert read_segments(tmp_path) == []
    steps, values = read_series(tmp_path, "loss")
    assert (steps.size, values.size) == (0, 0)
    write(tmp_path, ("loss",), (0, 1, 0.5))
    assert read_series(tmp_path, "no such column")[0].size == 0


@pytest.mark.parametrize("torn", [1, 8, 23])
def test_a_torn_last_record_is_left_out_and_cut_off_by_the_next_writer(tmp_path: Path, torn: int) -> None:
    write(tmp_path, ("loss",), (0, 1, 0.5), (1, 1, 0.4))
    (segment,) = tmp_path.glob("*.f64")
    with open(segment, "ab") as file:
        file.write(b"\xff" * torn)
    assert read_series(tmp_path, "loss")[1].tolist() == [0.5, 0.4]
    write(tmp_path, ("loss",), (2, 2, 0.3))
    assert read_series(tmp_path, "loss")[1].tolist() == [0.5, 0.4, 0.3]
    assert segment.stat().st_mode & 0o077 == 0


def test_a_write_cut_short_by_a_full_disk_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = StepWriter(tmp_path, ("loss",))
    writer.append(records((0, 1, 0.5)))
    plain = os.write
    monkeypatch.setattr(os, "write", lambda file, data: plain(file, data[:30]))
    with pytest.raises(OSError, match="No space left on device"):
        writer.append(records((1, 1, 0.4), (2, 1, 0.3)))
    monkeypatch.setattr(os, "write", plain)
    writer.append(records((1, 1, 0.4), (2, 1, 0.3)))
    writer.close()
    ((_, rows),) = read_segments(tmp_path)
    assert rows.tolist() == [[0, 1, 0.5], [1, 1, 0.4], [2, 1, 0.3]]


def test_values_that_are_not_finite_are_kept_as_they_are(tmp_path: Path) -> None:
    write(tmp_path, ("loss",), (0, 1, np.nan), (1, 1, np.inf))
    np.testing.assert_array_equal(read_series(tmp_path, "loss")[1], [np.nan, np.inf])


@pytest.mark.parametrize("damage", [b"", b"\x00" * 40, b"{}", b'["step", "att', None])
def test_a_segment_whose_columns_are_lost_hides_no_other(tmp_path: Path, damage: bytes | None) -> None:
    """Neither for the reader nor for the engine that goes on writing."""
    first = StepWriter(tmp_path, ["loss"])
    first.append(np.array([[0.0, 1, 0.5]]))
    first.close()
    names = tmp_path / "00001.json"
    names.unlink() if damage is None else names.write_bytes(damage)
    (tmp_path / "notes.f64").write_bytes(b"a person's file")
    second = StepWriter(tmp_path, ["loss"])
    second.append(np.array([[1.0, 2, 0.25]]))
    second.close()
    steps, losses = read_series(tmp_path, "loss")
    assert (steps.tolist(), losses.tolist()) == ([1.0], [0.25])
