"""Version-1 recordings find their places in version 2, column by column, and nothing is made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.basics.errors import DataError
from projects.controls.importers.task import parse
from projects.controls.layout import DEFAULT_STATE
from projects.controls.recordings import read_folder, read_recording
from tests.projects.controls.sessions import random_session
from tests.projects.controls.task_context import Listener

# column of version 1 → column of version 2 (and scale), from the two layouts
CONTROLS = {0: 0, 1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7, 7: 8, 8: 9, 9: 10}
STATE = {
    0: (0, 1), 1: (1, 1), 2: (2, 1), 3: (3, 1), 4: (6, 1), 5: (4, 1), 6: (5, 1), 7: (11, 1), 8: (12, 1), 9: (14, 1),
    10: (15, 1), 11: (20, 1), 12: (21, 1), 13: (26, 1), 14: (25, 1), 15: (22, 0.5), 16: (24, 1), 17: (29, 1),
    18: (30, 1), 19: (23, 1 / 3), 20: (7, 1), 21: (16, 1), 22: (27, 1), 23: (19, 1),
}  # fmt: skip
OFFHAND_EMPTY = 10


def version_1(path: Path, rows: int = 20, width: int = 24, **changes: Any) -> dict[str, Any]:
    """Write a recording as version 1 has it."""
    rng = np.random.default_rng(width)
    content: dict[str, Any] = {
        "frames": random_session("a", rows, 0).frames,
        "controls": np.column_stack([rng.integers(0, 2, (rows, 8)), rng.uniform(-1.2, 1.2, (rows, 2))]),
        "game_state": np.where(np.arange(width) == 20, rng.random((rows, width)) < 0.5, rng.random((rows, width))),
        "timestamps": np.arange(rows) / 30 + 5,
        "fps": np.float32(30),
        "session_type": "combat",
    } | changes
    with open(path, "wb") as file:
        np.savez(file, allow_pickle=True, **{key: value for key, value in content.items() if value is not None})
    return content


def converted(source: Path, out: Path, **arguments: Any) -> list[str]:
    listener = Listener()
    parse({"source": str(source), "out": str(out), **arguments}, listener)
    return listener.lines


@pytest.mark.parametrize("width", [16, 24])
def test_every_column_finds_its_place(tmp_path: Path, width: int) -> None:
    old = version_1(tmp_path / "a.npz", width=width)
    said = converted(tmp_path / "a.npz", tmp_path / "out")
    new = read_recording(tmp_path / "out" / "a.npz")
    controls = np.zeros((20, 28))
    for column, place in CONTROLS.items():
        controls[:, place] = old["controls"][:, column].clip(-1, 1)
    np.testing.assert_allclose(new.controls, controls, atol=1e-6)
    state = np.tile(DEFAULT_STATE, (20, 1))
    for column, (place, factor) in STATE.items():
        if column < width:
            state[:, place] = old["game_state"][:, column] * factor
    if width == 24:
        state[:, OFFHAND_EMPTY] = 1 - old["game_state"][:, 20]
    np.testing.assert_allclose(new.state, state, atol=1e-6)
    np.testing.assert_array_equal(new.frames, old["frames"])
    np.testing.assert_array_equal(new.timestamps, old["timestamps"])
    assert (new.fps, new.session_type, new.synthesised_pose) == (30, "combat", False)
    assert "did not record move_backward, drop_item, swap_offhand, open_inventory, hotbar_1" in said[0]
    assert f"{46 - width} of the 46 state values are at their defaults" in said[0]
    assert said[-1].endswith("20 frames in 1 sessions.")


def test_a_folder_of_them_gives_one_recording_each(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    for number in range(3):
        version_1(folder / f"session{number}.npz", rows=200)
    said = converted(folder, tmp_path / "out", kind="v1")
    assert [(one.name, len(one)) for one in read_folder(tmp_path / "out")] == [(f"session{k}", 200) for k in range(3)]
    assert sum("frames of version 1" in line for line in said) == 3


def test_they_are_never_padded_without_being_asked(tmp_path: Path) -> None:
    version_1(tmp_path / "a.npz", version=np.int32(1))
    with pytest.raises(DataError, match=r"version-1 recording .*`cockpit data parse`"):
        read_recording(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"controls": np.zeros((20, 9))}, r"controls has shape \(20, 9\), expected \(N, 10\)"),
        ({"game_state": np.zeros((20, 17))}, r"game_state has shape \(20, 17\), expected \(N, 16\) or \(N, 24\)"),
        ({"game_state": None}, "'game_state' is missing; expected game_state of shape"),
        ({"frames": np.full((20, 260), np.nan)}, "frames row 0 column 0 is nan"),
        ({"controls": np.zeros((19, 10))}, "frames has 20 rows, controls has 19 rows, game_state has 20 rows"),
        ({"frames": np.array([{}] * 20)}, "pickled data, which is never loaded"),
        ({"fps": -1}, "fps is -1.0, expected a number above 0"),
    ],
)
def test_a_bad_one_is_told(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    version_1(tmp_path / "a.npz", **changes)
    with pytest.raises(DataError, match=said):
        converted(tmp_path / "a.npz", tmp_path / "out")
    assert not (tmp_path / "out").exists()
