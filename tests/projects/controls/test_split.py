"""Whole sessions are held out, evenly over their types."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.basics.errors import DataError
from projects.controls.config import ControlsData
from projects.controls.recordings import write_recording
from projects.controls.split import read_split, validation_sessions
from tests.projects.controls.sessions import random_session


@given(
    types=st.lists(st.sampled_from("abcd"), min_size=2, max_size=40),
    fraction=st.floats(0.01, 0.99),
    seed=st.integers(0, 99),
)
def test_the_fraction_is_kept_in_all_and_nearly_in_each_type(types: list[str], fraction: float, seed: int) -> None:
    held_out = validation_sessions(types, fraction, seed)
    assert len(set(held_out)) == len(held_out) == min(max(1, round(fraction * len(types))), len(types) - 1)
    assert held_out == validation_sessions(types, fraction, seed)
    share = len(held_out) / len(types)
    counts = Counter(types[k] for k in held_out)
    for name, count in Counter(types).items():
        assert abs(counts[name] - share * count) <= 2


def test_every_type_is_in_both_parts_where_it_can_be() -> None:
    types = ["walk", "fight", "build", "mixed"] * 5
    for seed in range(10):
        held_out = validation_sessions(types, 0.2, seed)
        assert sorted(types[k] for k in held_out) == ["build", "fight", "mixed", "walk"]
    assert len({tuple(validation_sessions(types, 0.2, seed)) for seed in range(10)}) > 1


def test_the_only_session_of_a_type_is_kept_for_training() -> None:
    types = ["walk"] * 8 + ["fight"]
    assert all(8 not in validation_sessions(types, 0.2, seed) for seed in range(20))


def test_sessions_are_divided_whole(tmp_path: Path) -> None:
    for k in range(5):
        write_recording(tmp_path / f"{k}.npz", random_session(str(k), 10, k))
    train, validation = read_split(ControlsData(path=str(tmp_path)))
    assert len(validation) == 1
    assert sorted(recording.name for recording in (*train, *validation)) == ["0", "1", "2", "3", "4"]


def test_a_single_session_is_refused(tmp_path: Path) -> None:
    write_recording(tmp_path / "only.npz", random_session("only", 10, 0))
    with pytest.raises(DataError, match=r"holds one session only \(only\); expected at least two"):
        read_split(ControlsData(path=str(tmp_path)))
