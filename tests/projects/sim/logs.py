"""Tiny logs and drives for tests, written as the vehicles' own programs write them."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from projects.sim.drives import About, Drive

HEADER = "Path;SteerAngle;Throttle;Brake;Speed;X_Position;Y_Position;Pitch;Yaw;Roll"


def jpeg(pixels: NDArray[np.uint8]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")  # whatever its name says, without loss
    return buffer.getvalue()


def udacity_log(folder: Path, rows: list[dict[str, float]], bright: list[float], step: int = 50) -> Path:
    """`rows` of robot_log.csv, `step` ms apart; `bright` is the share of bright columns per frame, from the left."""
    (folder / "IMG").mkdir(parents=True)
    lines = [HEADER]
    for place, (row, share) in enumerate(zip(rows, bright, strict=True)):
        name = f"robocam_2017_05_02_11_16_{20 + place * step // 1000}_{place * step % 1000:03d}.jpg"
        pixels = np.zeros((16, 32, 3), np.uint8)
        pixels[:, : round(share * 32)] = 255
        (folder / "IMG" / name).write_bytes(jpeg(pixels))
        values = dict.fromkeys(HEADER.split(";")[1:], 0.0) | row
        lines.append(";".join([f"C:\\data\\IMG\\{name}", *(str(value) for value in values.values())]))
    (folder / "robot_log.csv").write_text("\n".join(lines) + "\n")
    return folder


def tub(folder: Path, angles: list[float], throttles: list[float], deleted: list[int] | None = None) -> Path:
    (folder / "images").mkdir(parents=True)
    rows = []
    for place, (angle, throttle) in enumerate(zip(angles, throttles, strict=True)):
        name = f"{place}_cam_image_array_.jpg"
        (folder / "images" / name).write_bytes(jpeg(np.full((6, 8, 3), place, np.uint8)))
        row = {"_index": place, "cam/image_array": name, "user/angle": angle, "user/throttle": throttle}
        rows.append(json.dumps({**row, "user/mode": "user", "_timestamp_ms": 5 * place}))
    (folder / "catalog_0.catalog").write_text("\n".join(rows) + "\n")
    manifest = [[], [], {}, {}, {"paths": ["catalog_0.catalog"], "deleted_indexes": deleted or []}]
    (folder / "manifest.json").write_text("\n".join(map(json.dumps, manifest)) + "\n")
    return folder


def archive(folder: Path) -> Path:
    path = folder.with_suffix(".tar.gz")
    with tarfile.open(path, "w:gz") as file:
        file.add(folder, arcname=folder.name)
    return path


def segment(folder: Path, seconds: float, speed: float, radar: list[tuple[float, float, float, float]]) -> Path:
    """A comma2k19 segment at constant speed; `radar` holds (time, forward, left, relative speed)."""
    times = np.arange(0, seconds, 0.01)

    def write(name: str, at: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        (folder / "processed_log" / name).mkdir(parents=True)
        for kind, array in (("t", at), ("value", values)):
            with (folder / "processed_log" / name / kind).open("wb") as file:
                np.save(file, array)

    write("IMU/accelerometer", times, np.tile([0.1, 0.2, -9.8], (len(times), 1)))
    write("IMU/gyro", times, np.tile([0.01, 0.02, 0.03], (len(times), 1)))
    write("CAN/speed", times, np.full((len(times), 1), speed))
    write("CAN/steering_angle", times, np.zeros(len(times)))
    rows = np.array([[0.0, 50, 9, 0], *radar, [seconds - 0.01, 50, 9, 0]])
    write("CAN/radar", rows[:, 0], np.column_stack([rows[:, 1:], np.zeros((len(rows), 3))]))
    return folder


def random_drive(name: str, frames: int, seed: int, *, horizon: int = 3, pictures: bool = True) -> Drive:
    random = np.random.default_rng(seed)
    labels = np.stack([random.integers(0, classes, frames) for classes in (4, 4, 6)], axis=1).astype(np.int8)
    labels[-horizon:] = -1
    telemetry = random.normal(size=(frames, 8)).astype(np.float32)
    pixels = random.integers(0, 256, (frames, 12, 16, 3), dtype=np.uint8) if pictures else None
    return Drive(name, np.arange(frames) / 10, telemetry, labels, pixels, About(source="test", horizon=horizon))
