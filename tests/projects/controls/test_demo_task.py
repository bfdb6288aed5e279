"""Making a folder of demo data: whole sessions only, continued where it stopped, nobody else's files touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.basics.errors import DataError, UserError
from engines.tasks import StopRequested
from projects.controls.baselines import read_ceiling
from projects.controls.demo.session import make_session
from projects.controls.demo.task import make
from projects.controls.recordings import read_folder
from tests.projects.controls.task_context import Listener

SMALL = {"sessions": 3, "minutes": 0.5, "seed": 7}


def make_small(out: Path, **changes: Any) -> Listener:
    listener = Listener(changes.pop("stop_at", None))
    make({**SMALL, "out": str(out), **changes}, listener)
    return listener


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_folder_holds_what_the_reader_and_the_ceiling_need(tmp_path: Path) -> None:
    listener = make_small(tmp_path / "deep" / "out")
    out = tmp_path / "deep" / "out"
    recordings = read_folder(out)
    assert [recording.name for recording in recordings] == ["demo_000_walking", "demo_001_combat", "demo_002_building"]
    for number, recording in enumerate(recordings):
        made = make_session(seed=7, number=number, minutes=0.5)
        assert np.array_equal(recording.controls, made.recording.controls)
        assert np.array_equal(read_ceiling(out / "ceiling" / f"{recording.name}.npz", 600), made.ceiling)
    assert listener.told == [(0, 3, "sessions"), (1, 3, "sessions"), (2, 3, "sessions"), (3, 3, "sessions")]
    assert len(listener.lines) == 3


def test_an_interrupted_folder_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    make_small(tmp_path / "straight")
    with pytest.raises(StopRequested):
        make_small(tmp_path / "stopped", stop_at=2)
    assert len(list((tmp_path / "stopped").glob("*.npz"))) == 2
    # as if it had been killed while writing: a temporary file, and a session that the notes do not know
    (tmp_path / "stopped" / ".demo_002_building.npz.ab12.tmp").write_bytes(b"half")
    (tmp_path / "stopped" / "demo_002_building.npz").write_bytes(b"never noted")
    listener = make_small(tmp_path / "stopped")
    assert len(listener.lines) == 1
    assert content(tmp_path / "stopped") == content(tmp_path / "straight")


def test_finished_sessions_stay_and_more_can_be_added(tmp_path: Path) -> None:
    make_small(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    assert make_small(tmp_path).lines == []
    make_small(tmp_path, sessions=4)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(read_folder(tmp_path)) == 4


def test_a_removed_session_is_made_again(tmp_path: Path) -> None:
    make_small(tmp_path)
    before = content(tmp_path)
    (tmp_path / "ceiling" / "demo_001_combat.npz").unlink()
    assert len(make_small(tmp_path).lines) == 1
    assert content(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("thesis.txt", "holds 'thesis.txt'"),
        ("ceiling/mine.npz", "holds 'ceiling/mine.npz'"),
        ("demo_000_walking.npz", "no demo.json"),
    ],
)
def test_a_folder_with_anything_else_is_refused_and_left_alone(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("precious")
    with pytest.raises(DataError, match=said):
        make_small(tmp_path)
    assert content(tmp_path) == {name: b"precious"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"seed": 8}, "was made with seed 7, not 8; choose another"), ({"minutes": 0.6}, r"minutes 0\.5, not 0\.6")],
)
def test_other_settings_need_another_folder(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    make_small(tmp_path, sessions=2)
    before = content(tmp_path)
    with pytest.raises(DataError, match=said):
        make_small(tmp_path, sessions=2, **changes)
    assert content(tmp_path) == before


def test_fewer_sessions_than_there_are_is_said(tmp_path: Path) -> None:
    make_small(tmp_path)
    with pytest.raises(DataError, match=r"holds 'demo_002_building\.npz', which this task does not make"):
        make_small(tmp_path, sessions=2)


def test_damaged_notes_are_said(tmp_path: Path) -> None:
    make_small(tmp_path, sessions=2)
    (tmp_path / "demo.json").write_text('{"seed": ')
    with pytest.raises(DataError, match=r"demo\.json: damaged"):
        make_small(tmp_path, sessions=2)


def test_a_file_in_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="is a file, expected a new or empty folder"):
        make_small(tmp_path / "file")
    with pytest.raises(DataError, match="cannot be written"):
        make_small(tmp_path / "file" / "below")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sessions": 1}, "sessions is 1, expected a whole number of at least 2: one to train on and one to validate"),
        ({"sessions": 2.5}, "sessions is 2.5, expected a whole number"),
        ({"minutes": 0.1}, "minutes is 0.1, expected a number of at least 0.5"),
        ({"minutes": float("nan")}, "minutes is nan"),
        ({"seed": -1}, "seed is -1, expected a whole number of at least 0"),
        ({"session": 3}, "session is no argument"),
    ],
)
def test_bad_arguments_are_said_before_anything_is_made(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        make_small(tmp_path / "out", **changes)
    assert caught.value.exit_code == 2
    assert not (tmp_path / "out").exists()
