"""Recordings come back as written; bad ones are refused with one exact sentence."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.basics.errors import DataError
from projects.controls.recordings import read_folder, read_recording, write_recording
from tests.projects.controls.sessions import random_session


def arrays(frames: int = 8) -> dict[str, Any]:
    session = random_session("a", frames, 0)
    return {
        "frames": session.frames,
        "controls": session.controls,
        "game_state": session.state,
        "timestamps": session.timestamps,
        "fps": 20.0,
        "version": 2,
        "session_type": "walk",
    }


def with_value(key: str, row: int, column: int, value: float) -> dict[str, Any]:
    content = arrays()
    content[key] = content[key].copy()
    content[key][row, column] = value
    return content


def test_a_recording_comes_back_as_it_was_written(tmp_path: Path) -> None:
    session = random_session("session", 20, 1, "combat")
    write_recording(tmp_path / "session.npz", session)
    again = read_recording(tmp_path / "session.npz")
    for name in ("frames", "controls", "state", "timestamps"):
        np.testing.assert_array_equal(getattr(again, name), getattr(session, name))
    assert (again.name, again.fps, again.session_type, again.synthesised_pose) == ("session", 20.0, "combat", False)
    with np.load(tmp_path / "session.npz") as content:
        assert sorted(content.files) == sorted(arrays())
    assert os.listdir(tmp_path) == ["session.npz"]


def test_a_synthesised_pose_is_marked(tmp_path: Path) -> None:
    session = random_session("session", 20, 1)
    object.__setattr__(session, "synthesised_pose", True)
    write_recording(tmp_path / "session.npz", session)
    assert read_recording(tmp_path / "session.npz").synthesised_pose


def test_what_is_optional_is_filled_in_and_ranges_are_clipped(tmp_path: Path) -> None:
    content = arrays()
    for key in ("timestamps", "version", "session_type"):
        del content[key]
    content["controls"] = content["controls"].astype(np.float64)
    content["controls"][0, [9, 10, 23, 24]] = [-3, 2, -0.5, 7]
    np.savez(tmp_path / "a.npz", **content)
    recording = read_recording(tmp_path / "a.npz")
    assert recording.controls[0, [9, 10, 23, 24]].tolist() == [-1, 1, 0, 1]
    assert recording.controls.dtype == np.float32
    assert recording.fps == 20
    assert recording.timestamps.tolist() == pytest.approx([k / 20 for k in range(8)])
    assert recording.session_type == "unknown"


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "wrong width": (
        {**arrays(), "frames": np.zeros((8, 259))},
        "frames has shape (8, 259), expected (N, 260).",
    ),
    "one dimension": ({**arrays(), "controls": np.zeros(28)}, "controls has shape (28,), expected (N, 28)."),
    "unequal rows": (
        {**arrays(), "game_state": np.zeros((7, 46))},
        "frames has 8 rows, controls has 8 rows, game_state has 7 rows; expected the same number of rows in each.",
    ),
    "no rows": (arrays(0), "has no rows; expected at least one."),
    "NaN row": (
        with_value("frames", 5, 17, np.nan),
        "frames row 5 column 17 is nan (1 rows in all have such values), expected finite numbers.",
    ),
    "infinite row": (
        with_value("controls", 2, 3, np.inf),
        "controls row 2 column 3 is inf (1 rows in all have such values), expected finite numbers.",
    ),
    "text": ({**arrays(), "frames": np.full((8, 260), "x")}, "frames holds <U1, expected numbers (float32)."),
    "missing": (
        {key: value for key, value in arrays().items() if key != "controls"},
        "the array 'controls' is missing; expected controls of shape (N, 28).",
    ),
    "version 1 controls": (
        {**arrays(), "controls": np.zeros((8, 10)), "version": 1},
        "this is a version-1 recording (controls has 10 columns), expected version 2 with 28; "
        "`cockpit data parse` makes one of it and says what it cannot know.",
    ),
    "version 1 state": (
        {**arrays(), "game_state": np.zeros((8, 24))},
        "this is a version-1 recording (game_state has 24 columns), expected version 2 with 46; "
        "`cockpit data parse` makes one of it and says what it cannot know.",
    ),
    "future version": ({**arrays(), "version": 3}, "this is a version-3 recording, expected version 2."),
    "no frame rate": ({**arrays(), "fps": 0.0}, "fps is 0.0, expected a number above 0."),
    "timestamps": (
        {**arrays(), "timestamps": np.zeros(7)},
        "timestamps has shape (7,) of float64, expected (8,) numbers.",
    ),
    "a list as type": (
        {**arrays(), "session_type": np.array(["a", "b"])},
        "session_type has shape (2,) of <U1, expected one short text.",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_recording_is_one_exact_sentence(tmp_path: Path, case: str) -> None:
    content, sentence = BAD[case]
    path = tmp_path / "a.npz"
    np.savez(path, **content)
    with pytest.raises(DataError) as caught:
        read_recording(path)
    assert str(caught.value) == f"{path}: {sentence}"
    assert caught.value.exit_code == 1


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("/tmp/this-must-never-run",)


def test_pickled_arrays_are_refused_unopened(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, **{**arrays(), "frames": np.array([Bomb()], dtype=object)})
    with pytest.raises(DataError, match="pickled data, which is never loaded"):
        read_recording(path)
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(DataError, match="pickled data, which is never loaded"):
        read_recording(path)
    assert not Path("/tmp/this-must-never-run").exists()


@settings(max_examples=30, deadline=None)
@given(cut=st.floats(0, 0.999))
def test_a_file_cut_anywhere_is_refused(tmp_path_factory: pytest.TempPathFactory, cut: float) -> None:
    folder = tmp_path_factory.mktemp("cut")
    write_recording(folder / "a.npz", random_session("a", 8, 0))
    whole = (folder / "a.npz").read_bytes()
    (folder / "a.npz").write_bytes(whole[: int(len(whole) * cut)])
    with pytest.raises(DataError, match=r"a\.npz: .*expected a whole \.npz file"):
        read_recording(folder / "a.npz")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_but_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    write_recording(folder / "a.npz", random_session("a", 3, 0))
    content = bytearray((folder / "a.npz").read_bytes())
    # headers and directory of the archive are where damage changes what is read
    places = st.one_of(st.integers(0, 200), st.integers(len(content) - 900, len(content) - 1))
    for place in data.draw(st.lists(places, min_size=1, max_size=8)):
        content[place] = data.draw(st.integers(0, 255))
    (folder / "a.npz").write_bytes(bytes(content))
    try:
        read_recording(folder / "a.npz")
    except DataError as error:
        assert str(error).startswith(f"{folder / 'a.npz'}: ")  # noqa: PT017


def test_a_single_array_and_a_text_file_are_no_recordings(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(DataError, match=r"one\.npy: this is a single array"):
        read_recording(tmp_path / "one.npy")
    (tmp_path / "text.npz").write_text("frames: none")
    with pytest.raises(DataError, match=r"text\.npz: .*expected"):
        read_recording(tmp_path / "text.npz")


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        read_folder(tmp_path / "absent")
    with pytest.raises(DataError, match="no recordings"):
        read_folder(tmp_path)
    for name in ("b", "a", "c"):
        write_recording(tmp_path / f"{name}.npz", random_session(name, 5, 0))
    assert [recording.name for recording in read_folder(tmp_path)] == ["a", "b", "c"]
    with pytest.raises(DataError, match=r"no such file"):
        read_recording(tmp_path / "d.npz")
