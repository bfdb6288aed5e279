"""A comma2k19 segment: telemetry of a real car. Its video is no part of it here, so a window has no visual tokens.

Rows are 20 per second, each the newest reading of every sensor. Labels are of the `horizon` rows after each row. Risk:
the shortest time to reach a radar target ahead, at the closing speed that it has. Action: speed and steering.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.basics import npz
from engines.basics.errors import DataError
from projects.sim.drives import About, Drive, Ids, Times
from projects.sim.labels import REASON
from projects.sim.readers.rules import action_ids, ahead, labelled, levels, since_last

FOLDER, RATE = "processed_log", 20.0
SENSORS = {"IMU/accelerometer": 3, "IMU/gyro": 3, "CAN/speed": 1, "CAN/steering_angle": 1, "CAN/radar": 3}
"""What is read, and how many values of each reading, the first ones: of the radar forward, left, relative speed."""
LANE, CLOSING = 1.8, 0.1
"""Metres to either side within which a target is ahead; speed (m/s) from which on it comes nearer."""
EDGES, SHARES = (0.1, 0.2, 0.4), (0.5, 0.8, 0.95)
"""Inverse times to contact (1/s, so 10, 5 and 2.5 s) of low, med and high; quantiles where that leaves one class."""
TURN, SLOWING, STANDING = 10.0, -0.5, 0.3
"""Degrees at the steering wheel, m/s², m/s."""
Floats64 = NDArray[np.float64]


def is_log(path: Path) -> bool:
    """Whether a folder is such a segment, whole or not."""
    return (path / FOLDER / "IMU").is_dir() or (path / FOLDER / "CAN").is_dir()


def read(path: Path, horizon: int, tick: Callable[[], None]) -> Drive:
    """The drive in a segment's folder. Raises `DataError`."""
    log = path / FOLDER
    signals = {}
    for name, values in SENSORS.items():
        signals[name] = _signal(log / name, values)
        tick()
    begin = max(at[0] for at, _ in signals.values())
    end = min(at[-1] for at, _ in signals.values())
    count = int((end - begin) * RATE) + 1
    if count <= horizon + 1:
        raise DataError(
            f"{path}: its sensors share {max(count, 0)} rows, expected more than {horizon + 1} (horizon + 1); copy a "
            "longer segment."
        )
    times: Times = begin + np.arange(count) / RATE
    newest = {name: values[np.searchsorted(at, times, side="right") - 1] for name, (at, values) in signals.items()}
    speed = newest["CAN/speed"][:, 0]
    gyro = newest["IMU/gyro"]
    telemetry = np.column_stack([newest["IMU/accelerometer"], gyro, speed, -gyro[:, 2]])  # axes: forward, right, down
    danger = _danger(*signals["CAN/radar"], times)
    labels, rules = _labels(danger, speed, newest["CAN/steering_angle"][:, 0], times, horizon)
    about = About(source="comma2k19", horizon=horizon, derived=("w",), rules=rules)
    return Drive(path.name, times - begin, telemetry.astype(np.float32), labels, None, about)


def _signal(folder: Path, columns: int) -> tuple[Floats64, Floats64]:
    """Times and the first `columns` values of a sensor's readings: (n,) and (n, columns). Raises `DataError`."""
    times, values = _array(folder / "t"), _array(folder / "value")
    if times.ndim != 1 or not values.ndim or len(times) != len(values) or len(times) < 2:
        raise DataError(
            f"{folder}: t is {times.shape} and value {values.shape}; expected as many rows, at least two; copy the "
            "segment again."
        )
    readings = values.reshape(len(values), -1)
    if readings.shape[1] < columns:
        raise DataError(f"{folder / 'value'}: holds {readings.shape[1]} values a reading, expected {columns}.")
    readings = readings[:, :columns]
    for name, array in (("t", times), ("value", readings)):
        if not np.isfinite(array).all():
            row = int(np.argwhere(~np.isfinite(array))[0][0])
            raise DataError(f"{folder / name}: reading {row} is not a number, expected finite ones; cut it out.")
    if len(back := np.flatnonzero(np.diff(times) < 0)):
        row = int(back[0]) + 1
        raise DataError(
            f"{folder / 't'}: time goes back at reading {row}, from {times[row - 1]:.2f} s to {times[row]:.2f} s; "
            "expected times that never do; sort or cut the segment."
        )
    return times, readings


def _array(path: Path) -> NDArray[Any]:
    try:
        array = npz.array_in(path)
    except FileNotFoundError:
        raise DataError(f"{path}: is missing, expected an array of the segment; copy it again.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as an array ({error}); copy the segment again.") from None
    if array.dtype.kind not in "fiu":
        raise DataError(f"{path}: holds {array.dtype}, expected an array of numbers; copy the segment again.")
    return array


def _danger(at: Floats64, targets: Floats64, times: Times) -> Floats64:
    """The largest inverse time to contact seen by the radar since the row before: (rows,), 0 with nothing ahead."""
    distance, left, relative = targets[:, 0], targets[:, 1], targets[:, 2]
    ahead_of_us = (abs(left) < LANE) & (distance > 0) & (relative < -CLOSING)
    inverse = np.where(ahead_of_us, -relative / np.maximum(distance, 0.1), 0.0)
    danger = np.zeros(len(times))
    rows = np.searchsorted(times, at, side="left")  # a reading counts from the first row after it on
    known = rows < len(times)
    np.maximum.at(danger, rows[known], inverse[known])
    return danger


def _labels(
    danger: Floats64, speed: Floats64, steering: Floats64, times: Times, horizon: int
) -> tuple[Ids, tuple[str, ...]]:
    risk, how = levels(ahead(danger, horizon, np.max), EDGES, SHARES)
    reason = np.where(risk == 0, REASON.index("unknown"), REASON.index("obstacle"))
    slowing = ahead(since_last(speed, times), horizon, np.mean) < SLOWING
    action = action_ids(
        ahead(steering, horizon, np.mean), turn=TURN, stop=ahead(speed, horizon, np.mean) < STANDING,
        reverse=ahead(speed, horizon, np.mean) < -STANDING, slow=slowing,
    )  # fmt: skip
    rules = (
        f"risk: the largest closing speed by distance of a radar target ahead in the next {horizon} rows, {how}",
        "reason: unknown without risk, else obstacle",
        f"action: of the next {horizon} rows, averaged: under {STANDING:g} m/s stop, steering wheel over {TURN:g}° a "
        f"turn, under {SLOWING:g} m/s² slow",
    )
    return np.stack([labelled(ids, len(times)) for ids in (risk, reason, action)], axis=1), rules
