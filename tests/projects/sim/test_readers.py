"""Logs of real vehicles: values and labels worked out by hand, faults named, and the real logs where they are."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.basics.errors import DataError, UserError
from projects.sim.drives import read_drive
from projects.sim.labels import ACTION, REASON, RISK
from projects.sim.readers import comma, donkeycar, udacity
from projects.sim.readers.rules import ahead, levels
from projects.sim.readers.task import NOTES, parse
from projects.sim.split import support
from tests.projects.controls.task_context import Listener
from tests.projects.sim.logs import archive, segment, tub, udacity_log

ROVER = Path(__file__).resolve().parents[4] / "shared" / "data" / "rover"
REAL = pytest.mark.skipif(not ROVER.is_dir(), reason="needs the real logs in ../shared/data/rover")


def nothing() -> None:
    pass


def test_udacity_telemetry_is_causal_and_radians_do_not_jump(tmp_path: Path) -> None:
    rows = [
        {"Speed": 1.0, "Yaw": 358.0},
        {"Speed": 2.0, "Yaw": 359.0},
        {"Speed": 2.0, "Yaw": 1.0},
        {"Speed": 2.5, "Yaw": 1.0},
    ]
    drive = udacity.read(udacity_log(tmp_path / "log", rows, [1.0] * 4), 1, nothing)
    assert drive.times.tolist() == pytest.approx([0, 0.05, 0.1, 0.15])
    assert drive.telemetry[:, 6].tolist() == [1, 2, 2, 2.5]
    assert drive.telemetry[:, 7].tolist() == pytest.approx([0, np.deg2rad(1) / 0.05, np.deg2rad(2) / 0.05, 0], rel=1e-4)
    assert drive.telemetry[:, 0].tolist() == pytest.approx([0, 20, 0, 10], rel=1e-4)
    assert drive.about.absent == ("az",)
    assert "ax" in drive.about.derived


def test_udacity_labels_are_of_what_comes_after(tmp_path: Path) -> None:
    rows = [
        {"Throttle": 1.0},
        {"Throttle": 1.0},
        {"Brake": 1.0},
        {"Throttle": 0.05},
        {"SteerAngle": 9.0, "Throttle": 1.0},
    ]
    bright = [1.0, 1.0, 1.0, 0.0, 1.0]
    drive = udacity.read(udacity_log(tmp_path / "log", rows, bright), 1, nothing)
    named = [(RISK[r], REASON[q], ACTION[a]) if r >= 0 else None for r, q, a in drive.labels.tolist()]
    assert named == [
        ("none", "unknown", "continue"),
        ("none", "unknown", "stop"),
        ("high", "tight_space", "slow"),
        ("none", "unknown", "turn_left"),
        None,
    ]


def test_an_open_flank_makes_it_an_obstacle(tmp_path: Path) -> None:
    drive = udacity.read(udacity_log(tmp_path / "log", [{}] * 3, [0.34, 0.34, 1.0]), 1, nothing)
    assert drive.labels[0, :2].tolist() == [RISK.index("high"), REASON.index("obstacle")]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (";Speed;", ";Velocity;", r"robot_log\.csv:1: lacks Speed"),
        (";1.5;", ";fast;", r"robot_log\.csv:3: Speed is 'fast', expected a number"),
        (";1.5;", ";inf;", r"robot_log\.csv:3: Speed is inf"),
        ("_20_050.jpg", "_20_0x0.jpg", r"robot_log\.csv:3: .* has no time"),
        ("_20_100.jpg", "_20_101.jpg", r"frame robocam_\S*_101\.jpg cannot be read"),
    ],
)
def test_a_bad_udacity_log_is_said_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    folder = udacity_log(tmp_path / "log", [{"Speed": 1.0}, {"Speed": 1.5}, {"Speed": 2.0}], [1.0] * 3)
    log = folder / "robot_log.csv"
    log.write_text(log.read_text().replace(old, new))
    with pytest.raises(DataError, match=said):
        udacity.read(folder, 1, nothing)


def test_a_broken_picture_and_one_of_another_size_are_named(tmp_path: Path) -> None:
    folder = udacity_log(tmp_path / "log", [{}] * 3, [1.0] * 3)
    last = sorted((folder / "IMG").iterdir())[-1]
    content = last.read_bytes()
    last.write_bytes(content[:40])
    with pytest.raises(DataError, match=r"_100\.jpg: cannot be read as a JPEG or PNG"):
        udacity.read(folder, 1, nothing)


def test_a_tub_as_folder_and_archive_is_the_same_and_leaves_deleted_rows_out(tmp_path: Path) -> None:
    folder = tub(tmp_path / "tub", [0.0, 0.0, 0.9, -0.9, 0.0], [0.5, 0.5, 0.5, 0.5, 0.1], deleted=[0])
    drives = [donkeycar.read(path, 1, 20.0, nothing) for path in (folder, archive(folder))]
    for drive in drives:
        assert [ACTION[a] if a >= 0 else None for a in drive.labels[:, 2].tolist()] == [
            "turn_right",
            "turn_left",
            "slow",
            None,
        ]
        assert (drive.labels[:, :2] == -1).all()
        assert not drive.telemetry.any()
        assert drive.rate == pytest.approx(20)
        assert drive.frames is not None
        assert drive.frames[:, 0, 0, 0].tolist() == [1, 2, 3, 4]


def test_one_class_by_the_fixed_rule_means_quantiles(tmp_path: Path) -> None:
    angles = [0.01 * k for k in range(12)]
    drive = donkeycar.read(tub(tmp_path / "tub", angles, [0.5] * 12), 1, 20.0, nothing)
    assert set(drive.labels[:-1, 2].tolist()) == {ACTION.index("continue"), ACTION.index("turn_right")}
    assert "by quantiles" in drive.about.rules[0]


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("manifest.json", "{}", "is none of a version 2 tub"),
        ("catalog_0.catalog", '{"_index": 0}\n', r"catalog_0\.catalog:1: expected a JSON object"),
        ("catalog_0.catalog", None, r"catalog_0\.catalog is missing"),
    ],
)
def test_a_bad_tub_is_said(tmp_path: Path, file: str, content: str | None, said: str) -> None:
    folder = tub(tmp_path / "tub", [0.0] * 4, [0.5] * 4)
    (folder / file).unlink() if content is None else (folder / file).write_text(content)
    with pytest.raises(DataError, match=said):
        donkeycar.read(folder, 1, 20.0, nothing)


def test_a_damaged_archive_is_said(tmp_path: Path) -> None:
    path = archive(tub(tmp_path / "tub", [0.0] * 4, [0.5] * 4))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match="cannot be read as an archive"):
        donkeycar.read(path, 1, 20.0, nothing)


def test_a_segment_has_no_frames_and_its_risk_is_time_to_contact(tmp_path: Path) -> None:
    # 10 m ahead, coming nearer by 3 m/s at 0.52 s: 3.3 s to contact is med; another one beside the lane says nothing
    folder = segment(tmp_path / "seg", 2.0, 12.0, [(0.52, 10.0, 0.5, -3.0), (1.0, 5.0, 3.0, -9.0)])
    drive = comma.read(folder, 2, nothing)
    assert drive.frames is None
    assert drive.telemetry[5].tolist() == pytest.approx([0.1, 0.2, -9.8, 0.01, 0.02, 0.03, 12.0, -0.03], rel=1e-5)
    risky = np.flatnonzero(drive.labels[:, 0] == RISK.index("med"))
    assert risky.tolist() == [9, 10]  # the row at .55 s is the first to know of it, and lies within 2 rows after these
    assert set(drive.labels[:-2, 0].tolist()) == {RISK.index("none"), RISK.index("med")}


TIMES = np.arange(0, 1, 0.01)


def saved(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("CAN/speed/value", b"none", r"CAN/speed/value: cannot be read as an array"),
        ("CAN/speed/value", None, r"CAN/speed/value: is missing"),
        ("CAN/speed/t", saved(TIMES[:-3]), r"CAN/speed: t is \(97,\) and value \(100, 1\); expected as many rows"),
        ("CAN/speed/value", saved(np.array(9.0)), r"CAN/speed: t is \(100,\) and value \(\)"),
        ("CAN/speed/value", saved(np.array(["a"] * 100)), r"CAN/speed/value: holds <U1, expected an array of numbers"),
        ("CAN/speed/value", saved(np.full((100, 1), np.nan)), r"CAN/speed/value: reading 0 is not a number"),
        ("IMU/gyro/value", saved(np.zeros((100, 2))), r"IMU/gyro/value: holds 2 values a reading, expected 3"),
        (
            "IMU/gyro/t",
            saved(np.concatenate([TIMES[:50], TIMES[:50]])),
            r"IMU/gyro/t: time goes back at reading 50, from 0\.49 s to 0\.00 s",
        ),
        ("CAN/radar/t", saved(np.array([5.0, 6.0])), r"seg: its sensors share 0 rows, expected more than 3"),
    ],
)
def test_a_bad_segment_is_said(tmp_path: Path, file: str, content: bytes | None, said: str) -> None:
    folder = segment(tmp_path / "seg", 1.0, 12.0, [])
    path = folder / "processed_log" / file
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(DataError, match=said):
        comma.read(folder, 2, nothing)


def test_a_segment_without_all_of_its_sensors_is_one_still_and_says_so(tmp_path: Path) -> None:
    folder = segment(tmp_path / "seg", 1.0, 12.0, [])
    shutil.rmtree(folder / "processed_log" / "IMU")
    with pytest.raises(DataError, match=r"IMU/accelerometer/t: is missing"):
        parse({"source": str(folder), "out": str(tmp_path / "out")}, Listener())


def test_ahead_leaves_its_own_frame_out() -> None:
    values = np.array([9.0, 1.0, 2.0, 3.0])
    assert ahead(values, 2, np.max).tolist() == [2, 3]


def test_levels_fall_back_to_quantiles_only_where_one_class_is_left() -> None:
    assert levels(np.array([0.0, 0.3, 0.9]), (0.2, 0.5, 0.8), (0.3, 0.6, 0.9))[0].tolist() == [0, 1, 3]
    ids, how = levels(np.array([0.0, 0.01, 0.02, 0.03]), (0.2, 0.5, 0.8), (0.0, 0.5, 1.0))
    assert ids.tolist() == [0, 1, 2, 3]
    assert "quantiles" in how


def test_parse_takes_a_folder_of_logs_and_resumes(tmp_path: Path) -> None:
    udacity_log(tmp_path / "logs" / "yard", [{}] * 4, [1.0] * 4)
    tub(tmp_path / "logs" / "hall", [0.0] * 4, [0.5] * 4)
    order = {"source": str(tmp_path / "logs"), "out": str(tmp_path / "out"), "horizon": 1}
    listener = Listener()
    parse(order, listener)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["hall.npz", NOTES, "yard.npz"]
    assert read_drive(tmp_path / "out" / "yard.npz").about.source == "udacity"
    assert any("telemetry absent, 0 throughout: az" in line for line in listener.lines)
    assert any("risk: no labels" in line for line in listener.lines)
    before = (tmp_path / "out" / "hall.npz").read_bytes()
    (tmp_path / "out" / "yard.npz").unlink()
    parse(order, Listener())
    assert (tmp_path / "out" / "yard.npz").is_file()
    assert (tmp_path / "out" / "hall.npz").read_bytes() == before


def test_parse_says_what_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no log, expected robot_log\.csv"):
        parse({"source": str(tmp_path), "out": str(tmp_path / "out")}, Listener())
    with pytest.raises(UserError, match="horizon is 0"):
        parse({"source": str(tmp_path), "out": str(tmp_path / "out"), "horizon": 0}, Listener())


@REAL
def test_the_real_rover_log_has_every_risk() -> None:
    drive = udacity.read(ROVER / "udacity_rover" / "test_dataset", 10, nothing)
    counts = support(drive.labels)
    assert len(drive) == 283
    assert counts["risk"] == {"none": 217, "low": 6, "med": 6, "high": 44}
    assert counts["action"]["stop"] == 9
    assert np.corrcoef(drive.telemetry[10:, 7], drive.labels[10:, 2] == ACTION.index("turn_left"))[0, 1] > 0


@REAL
def test_the_real_segment_is_telemetry_only() -> None:
    drive = comma.read(ROVER / "comma2k19_example", 10, nothing)
    assert drive.frames is None
    assert len(drive) == 1199
    assert 7.9 < drive.telemetry[:, 6].min() < drive.telemetry[:, 6].max() < 20
    assert support(drive.labels)["risk"]["low"] == 73
