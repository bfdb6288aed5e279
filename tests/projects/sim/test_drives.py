"""Drives on disk and their windows: what is refused, and that no frame is on both sides of a split."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from msgspec.structs import replace as replace_fields

from engines.basics.errors import DataError
from projects.sim.config import SimData
from projects.sim.drives import Drive, drive_paths, read_drive, write_drive
from projects.sim.split import split_windows, support, usable
from projects.sim.windows import FrameRows, WindowSource
from tests.projects.sim.logs import random_drive

CPU = torch.device("cpu")


def test_a_drive_is_read_as_it_was_written(tmp_path: Path) -> None:
    drive = random_drive("a", 20, 0)
    write_drive(tmp_path / "a.npz", drive)
    again = read_drive(tmp_path / "a.npz")
    assert again.about == drive.about
    for name in ("times", "telemetry", "labels", "frames"):
        assert np.array_equal(getattr(again, name), getattr(drive, name)), name


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"labels": np.full((20, 3), 4, np.int8)},
            r"risk label 4 is not known, expected 0 to 3 \(none, low, med, high\), or -1",
        ),
        ({"labels": np.zeros((20, 2), np.int8)}, r"labels is int8 \(20, 2\), expected int8 \(20, 3\)"),
        ({"telemetry": np.zeros((20, 7), np.float32)}, r"telemetry is float32 \(20, 7\), expected float32 \(20, 8\)"),
        ({"telemetry": np.full((20, 8), np.nan, np.float32)}, "telemetry ax of frame 0 is not a number"),
        ({"times": np.zeros(20)}, "times of 20 frames, expected at least two that only grow"),
        ({"frames": np.zeros((19, 4, 4, 3), np.uint8)}, r"frames is uint8 \(19, 4, 4, 3\)"),
    ],
)
def test_a_drive_that_does_not_fit_is_said(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    write_drive(tmp_path / "a.npz", replace(random_drive("a", 20, 0), **changes))
    with pytest.raises(DataError, match=said):
        read_drive(tmp_path / "a.npz")


def test_a_damaged_file_one_of_another_kind_and_none_are_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no drive \(NAME\.npz\)"):
        drive_paths(tmp_path)
    write_drive(tmp_path / "a.npz", random_drive("a", 20, 0))
    content = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="cannot be read as a drive"):
        read_drive(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", x=np.zeros(3))
    with pytest.raises(DataError, match="holds no `about`, so it is no drive"):
        read_drive(tmp_path / "b.npz")


def used(drives: list[Drive], ends: np.ndarray[Any, Any], frames: int) -> tuple[set[int], set[int]]:
    """Rows that windows show, and rows that they show or their labels were made from."""
    shown = {int(row) for end in ends for row in range(end - frames + 1, end + 1)}
    ahead = {int(end) + k for end in ends for k in range(1, drives[0].about.horizon + 1)}
    return shown, shown | ahead


@pytest.mark.parametrize("frames", [3, 8])
def test_blocks_leave_a_guard_on_both_sides(frames: int) -> None:
    drives = [random_drive(str(k), 150 + 7 * k, k) for k in range(2)]
    windows = split_windows(drives, frames, SimData(path="."))
    assert len(windows.validation) > 10
    train, validation = (used(drives, ends, frames)[1] for ends in (windows.train, windows.validation))
    assert min(abs(one - other) for one in train for other in validation) > frames
    assert "every fifth 2 s" in windows.how
    starts = np.array([0, len(drives[0])])
    for end in windows.validation:  # whole windows of one block of one drive
        drive = int(np.searchsorted(starts, end, side="right")) - 1
        seconds = drives[drive].times[[end - starts[drive] - frames + 1, end - starts[drive]]]
        assert seconds[0] // 2 == seconds[1] // 2
        assert (windows.groups == drive * 10**6 + seconds[1] // 2).any()


def test_the_block_that_leaves_most_classes_on_both_sides_validates() -> None:
    drive = random_drive("a", 120, 0)
    drive.labels[:-3] = 0
    drive.labels[30:34, 0] = drive.labels[90:94, 0] = 3  # at 3 s and 9 s
    windows = split_windows([drive], 4, SimData(path="."))
    seconds = drive.times[windows.validation]
    assert set((seconds // 2 * 2).tolist()) in ({2.0}, {8.0})  # any other block leaves validation without high
    assert support(drive.labels[windows.train])["risk"]["high"] == 4


def test_five_drives_or_more_are_held_out_whole() -> None:
    drives = [random_drive(f"d{k}", 30, k) for k in range(5)]
    windows = split_windows(drives, 4, SimData(path="."))
    of = [set((ends // 30).tolist()) for ends in (windows.train, windows.validation)]
    assert len(of[1]) == 1
    assert of[0] | of[1] == set(range(5))
    assert set(windows.groups.tolist()) == of[1]
    assert split_windows(drives, 4, SimData(path=".", split_seed=7)).how != windows.how


def test_windows_go_over_no_gap_and_need_a_label() -> None:
    drive = random_drive("a", 20, 0)
    drive.times[10:] += 3
    drive.labels[5] = -1
    assert usable(drive, 3).tolist() == [2, 3, 4, 6, 7, 8, 9, 12, 13, 14, 15, 16]


def test_too_short_a_drive_is_said() -> None:
    with pytest.raises(DataError, match="no window of 8 frames with a label is left for"):
        split_windows([random_drive("a", 15, 0)], 8, SimData(path="."))
    with pytest.raises(DataError, match=r"record more\.$"):
        split_windows([random_drive("a", 15, 0)], 8, SimData(path="."))
    with pytest.raises(DataError, match=r"expected two or more for data\.split logs"):
        split_windows([random_drive("a", 15, 0)], 8, SimData(path=".", split="logs"))


def test_windows_for_which_a_drive_is_too_slow_come_with_advice_that_helps() -> None:
    drive = random_drive("a", 400, 0)
    said = r"for validation; at 10 frames per second the 2 s .* hold 20, and 80 .* set model\.frames to (\d+) or less"
    with pytest.raises(DataError, match=said) as found:
        split_windows([drive], 25, SimData(path="."))
    most = int(re.search(said, str(found.value))[1])  # type: ignore[index]
    windows = split_windows([drive], most, SimData(path="."))
    assert min(len(windows.train), len(windows.validation)) > 0
    far = replace(drive, about=replace_fields(drive.about, horizon=100))
    with pytest.raises(DataError, match=r"for training; .* and labels look 100 ahead; parse the log with a smaller"):
        split_windows([far], 8, SimData(path="."))


def source(drives: list[Drive], ends: list[int], frames: int = 3) -> WindowSource:
    features = [np.arange(len(drive) * 2, dtype=np.float32).reshape(-1, 2) for drive in drives]
    return WindowSource(FrameRows.of(drives, features, CPU), np.array(ends), frames)


def test_a_batch_is_what_lies_at_its_rows() -> None:
    drives = [random_drive("a", 10, 0), random_drive("b", 10, 1)]
    batch = source(drives, [4, 13, 6]).batch(torch.tensor([1, 0]), None)
    assert batch["vis_feats"][0].tolist() == [[2, 3], [4, 5], [6, 7]]
    assert torch.equal(batch["telemetry"][0], torch.from_numpy(drives[1].telemetry[3]))
    assert batch["action_id"].tolist() == [drives[1].labels[3, 2], drives[0].labels[4, 2]]
    assert batch["weight"].tolist() == [1, 1]


def test_raw_frames_are_in_zero_to_one_channels_first() -> None:
    drive = random_drive("a", 10, 0)
    raw = WindowSource(FrameRows.of([drive], None, CPU), np.array([5]), 3).batch(torch.tensor([0]), None)["frames"]
    assert drive.frames is not None
    assert raw.shape == (1, 3, 3, 12, 16)
    assert raw[0, 2, 1, 4, 7] == pytest.approx(drive.frames[5, 4, 7, 1] / 255)


def test_the_last_label_is_one_whose_future_is_over() -> None:
    drives = [random_drive("a", 10, 0), random_drive("b", 10, 1)]
    last = source(drives, [4, 11, 15]).last_labels
    assert last[0].tolist() == drives[0].labels[1].tolist()
    assert last[1].tolist() == [-1, -1, -1]  # three frames before is another drive
    assert last[2].tolist() == drives[1].labels[2].tolist()


def test_frames_of_other_sizes_need_features() -> None:
    other = replace(random_drive("b", 10, 1), frames=np.zeros((10, 4, 4, 3), np.uint8))
    with pytest.raises(DataError, match=r"b: has frames of 4 × 4, but a has frames of 16 × 12"):
        FrameRows.of([random_drive("a", 10, 0), other], None, CPU)
