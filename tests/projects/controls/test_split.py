"""Whole sessions are held out; how they are drawn is shown in `tests/engines/training/test_holdout.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.basics.errors import DataError
from projects.controls.config import ControlsData
from projects.controls.recordings import write_recording
from projects.controls.split import read_split
from tests.projects.controls.sessions import random_session


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
