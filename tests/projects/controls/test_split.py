"""Whole sessions are held out, with a gap inside a sitting; how they are drawn is shown in `test_holdout.py`."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from engines.basics.errors import DataError
from projects.controls.config import ControlsData
from projects.controls.recordings import Recording, write_recording
from projects.controls.split import read_parts, read_split, with_gaps
from tests.projects.controls.sessions import random_session
from tests.projects.controls.test_import_minerl import parsed, tick


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


def test_a_test_part_has_every_type_and_shares_no_session(tmp_path: Path) -> None:
    for k in range(9):
        write_recording(tmp_path / f"{k}.npz", random_session(str(k), 40, k, "abc"[k % 3]))
    parts = read_parts(ControlsData(path=str(tmp_path), val_fraction=0.34, test_fraction=0.34))
    assert [sorted(one.session_type for one in part) for part in (parts.train, parts.validation, parts.test)] == [
        ["a", "b", "c"]
    ] * 3
    names = [one.name for part in (parts.train, parts.validation, parts.test) for one in part]
    assert sorted(names) == [str(k) for k in range(9)]
    plain = read_parts(ControlsData(path=str(tmp_path)))
    assert plain.test == []
    with pytest.raises(ValueError, match=r"val_fraction 0\.5 and test_fraction 0\.5 must leave sessions to train on"):
        ControlsData(path=str(tmp_path), val_fraction=0.5, test_fraction=0.5)


def pieces(name: str, lengths: list[int]) -> list[Recording]:
    """One sitting in pieces, as the importers cut it."""
    whole = random_session(name, sum(lengths), 1)
    ends = np.cumsum([0, *lengths])
    return [
        replace(
            whole, name=f"{name}_{k}", frames=whole.frames[a:b], controls=whole.controls[a:b],
            state=whole.state[a:b], timestamps=whole.timestamps[a:b],
        ) for k, (a, b) in enumerate(pairwise(ends))
    ]  # fmt: skip


def lengths(kept: list[Recording | None]) -> list[int]:
    return [0 if one is None else len(one) for one in kept]


@pytest.mark.parametrize(
    ("ranks", "left"),
    [
        ([0, 0, 0, 0], [100, 100, 100, 100]),
        ([0, 1, 0, 0], [70, 100, 70, 100]),
        ([1, 0, 1, 0], [100, 40, 100, 70]),
        ([0, 1, 2, 0], [70, 70, 100, 70]),
        ([2, 0, 0, 1], [100, 70, 70, 100]),
    ],
)
def test_a_window_is_left_out_beside_what_is_held_out(ranks: list[int], left: list[int]) -> None:
    """Of the piece of lower rank, on the side of the border; the other stays whole."""
    sitting = pieces("log", [100] * 4)
    kept, shortened = with_gaps(sitting, ranks, 30)
    assert lengths(kept) == left
    assert shortened == sum(length < 100 for length in left)
    times = [(rank, one.timestamps) for rank, one in zip(ranks, kept, strict=True) if one is not None]
    for (rank, before), (other, after) in pairwise(times):
        if rank != other:
            assert round((after[0] - before[-1]) * 20) == 31, "30 frames lie between the two"
    for one in kept:
        assert one is not None
        first = round(one.timestamps[0] * 20)
        whole = random_session("log", 400, 1)
        assert np.array_equal(one.controls, whole.controls[first : first + len(one)])
        assert np.array_equal(one.frames, whole.frames[first : first + len(one)])
        assert np.array_equal(one.state, whole.state[first : first + len(one)])


def test_a_piece_of_less_than_a_window_is_left_out() -> None:
    kept, _ = with_gaps(pieces("log", [100, 89, 59, 60, 100]), [1, 0, 0, 0, 1], 30)
    assert lengths(kept) == [100, 59, 59, 30, 100]
    kept, _ = with_gaps(pieces("log", [100, 89, 100]), [1, 0, 1], 30)
    assert lengths(kept) == [100, 0, 100]


def test_sittings_of_their_own_lose_nothing() -> None:
    a, b = pieces("log", [60, 60])
    later = replace(b, timestamps=b.timestamps + 2)  # 2 s are more than 30 frames
    for one, other in (
        (a, later),
        (a, replace(b, timestamps=np.arange(60) / 20)),
        (a, replace(b, name="log_2")),
        (a, replace(b, name="other_1")),
        (replace(a, name="walking"), replace(b, name="walking_too")),
        (a, replace(b, session_type="fight")),
    ):
        assert lengths(with_gaps([one, other], [0, 1], 30)[0]) == [60, 60]
    assert lengths(with_gaps([a, b], [0, 1], 0)[0]) == [60, 60], "older runs"
    padded = [replace(one, name=name) for one, name in zip((a, b), ("log_09", "log_10"), strict=True)]
    assert lengths(with_gaps(padded, [0, 1], 30)[0]) == [30, 60]


def test_pieces_of_a_parsed_log_have_gaps_in_new_runs_alone(tmp_path: Path) -> None:
    parsed(tmp_path, [tick(50 * k, *(["forward"] if k % 60 < 30 else [])) for k in range(800)], sessions=8)
    settings = ControlsData(path=str(tmp_path / "out"))
    new, old = read_parts(settings), read_parts(settings, edition=1)
    assert [one.name for one in new.validation] == [one.name for one in old.validation]
    assert sum(map(len, new.validation)) == sum(map(len, old.validation))
    assert old.shortened == 0
    assert sum(map(len, old.train)) - sum(map(len, new.train)) >= 30 * new.shortened >= 30
    held = [one.timestamps for one in new.validation]
    for one in new.train:
        for times in held:
            assert min(abs(one.timestamps[0] - times[-1]), abs(times[0] - one.timestamps[-1])) * 20 > 30


def test_a_sitting_of_which_nothing_is_left_is_refused(tmp_path: Path) -> None:
    for one in pieces("log", [40, 40]):
        write_recording(tmp_path / f"{one.name}.npz", one)
    with pytest.raises(DataError, match=r"pieces of one sitting, and 30 frames beside each .* leave none to train on"):
        read_parts(ControlsData(path=str(tmp_path)))
