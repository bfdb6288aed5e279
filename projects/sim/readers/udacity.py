"""A log of the Udacity rover simulator: robot_log.csv and its IMG folder.

Labels are of the `horizon` frames after each frame. Risk: the least share of bright (passable) ground ahead. Reason:
tight space where both flanks are dark too, obstacle where one is open; unknown without risk. Action: the driver's
controls.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engines.basics.errors import DataError
from projects.sim.drives import About, Bytes, Drive, Ids, Times
from projects.sim.labels import REASON, TELEMETRY
from projects.sim.readers.pictures import pictures
from projects.sim.readers.rules import action_ids, ahead, labelled, levels, since_last, turned

LOG = "robot_log.csv"
COLUMNS = ("SteerAngle", "Throttle", "Brake", "Speed", "Pitch", "Yaw", "Roll")
BRIGHT = 160
"""Of all three colours, from which on ground is passable, as the simulator's own exercise has it."""
HEIGHT, AHEAD, LEFT, RIGHT = (0.56, 0.88), (0.34, 0.66), (0.0, 0.34), (0.66, 1.0)
"""Shares of the picture: rows of the ground nearby, and the columns ahead, to the left and to the right."""
EDGES, SHARES = (0.15, 0.4, 0.7), (0.25, 0.5, 0.75)
"""Shares of dark ground ahead from which on risk is low, med and high; quantiles where that leaves one class."""
TURN = 5.0
"""Degrees of mean steering, of 15, from which on it is a turn."""


def is_log(path: Path) -> bool:
    """Whether a folder is such a log."""
    return (path / LOG).is_file()


def read(path: Path, horizon: int, tick: Callable[[], None]) -> Drive:
    """The drive in a folder. Raises `DataError` naming the line that is wrong."""
    names, columns = _table(path / LOG)
    times = np.array([_seconds(name, f"{path / LOG}:{line}") for line, name in enumerate(names, 2)])
    kept = np.concatenate([[True], np.diff(times) > 0])  # the simulator may write a frame twice
    names, times = [name for name, keep in zip(names, kept, strict=True) if keep], times[kept]
    columns = {name: values[kept] for name, values in columns.items()}
    if len(names) <= horizon + 1:
        raise DataError(f"{path / LOG}: holds {len(names)} frames, expected more than {horizon + 1} (horizon + 1).")
    times = times - times[0]
    frames = pictures(names, lambda name: (path / "IMG" / name).read_bytes(), path, tick)
    labels, rules = _labels(frames, columns, horizon)
    about = About(
        source="udacity", horizon=horizon, derived=("ax", "ay", "gx", "gy", "gz", "w"), absent=("az",), rules=rules
    )
    return Drive(path.name, times, _telemetry(columns, times), labels, frames, about)


def _table(path: Path) -> tuple[list[str], dict[str, NDArray[np.float64]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file, delimiter=";", restkey="more", restval=""))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as a log ({error}); copy it again.") from None
    missing = [name for name in ("Path", *COLUMNS) if not rows or name not in rows[0]]
    if missing:
        raise DataError(f"{path}:1: lacks {', '.join(missing)}; expected the columns Path;{';'.join(COLUMNS)}.")
    columns = {name: np.empty(len(rows)) for name in COLUMNS}
    for line, row in enumerate(rows, 2):
        for name in COLUMNS:
            try:
                columns[name][line - 2] = float(row[name])
            except ValueError:
                raise DataError(f"{path}:{line}: {name} is {row[name]!r}, expected a number.") from None
            if not np.isfinite(columns[name][line - 2]):
                raise DataError(f"{path}:{line}: {name} is {row[name]}, expected a finite number.")
    return [re.split(r"[/\\]", row["Path"])[-1] for row in rows], columns


def _seconds(name: str, where: str) -> float:
    """When a frame was taken, as its file's name says: robocam_2017_05_02_11_16_21_421.jpg."""
    found = re.search(r"(\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d_\d{3})\.\w+$", name)
    try:
        if found is None:
            raise ValueError
        return datetime.strptime(found[1] + "000+0000", "%Y_%m_%d_%H_%M_%S_%f%z").timestamp()
    except ValueError:
        raise DataError(f"{where}: {name!r} has no time, expected NAME_YYYY_MM_DD_HH_MM_SS_mmm.jpg.") from None


def _telemetry(columns: dict[str, NDArray[np.float64]], times: Times) -> NDArray[np.float32]:
    speed, roll, pitch, yaw = columns["Speed"], *(turned(columns[name]) for name in ("Roll", "Pitch", "Yaw"))
    rates = dict(zip(("gx", "gy", "gz"), (since_last(angle, times) for angle in (roll, pitch, yaw)), strict=True))
    values = {**rates, "v": speed, "w": rates["gz"], "ax": since_last(speed, times), "ay": speed * rates["gz"]}
    zeros = np.zeros_like(speed)
    return np.stack([values.get(name, zeros) for name in TELEMETRY], axis=1).astype(np.float32)


def _labels(frames: Bytes, columns: dict[str, NDArray[np.float64]], horizon: int) -> tuple[Ids, tuple[str, ...]]:
    middle, left, right = (1 - ahead(_bright(frames, part), horizon, np.min) for part in (AHEAD, LEFT, RIGHT))
    risk, how = levels(middle, EDGES, SHARES)
    flanks = (left >= EDGES[1]) & (right >= EDGES[1])
    reason = np.select([risk == 0, flanks], [REASON.index("unknown"), REASON.index("tight_space")], 1)
    mean = {name: ahead(columns[name], horizon, np.mean) for name in ("SteerAngle", "Throttle", "Brake")}
    action = action_ids(
        mean["SteerAngle"], turn=TURN, stop=mean["Brake"] > 0.5, reverse=mean["Throttle"] < 0,
        slow=mean["Throttle"] < 0.1,
    )  # fmt: skip
    rules = (
        f"risk: the largest share of dark ground ahead in the next {horizon} frames, {how}",
        f"reason: unknown without risk, tight_space with at least {EDGES[1]:g} dark on both flanks, else obstacle",
        f"action: the controls of the next {horizon} frames, averaged: brake over .5 stop, steering over {TURN:g}° a "
        "turn, throttle under .1 slow",
    )
    return np.stack([labelled(ids, len(frames)) for ids in (risk, reason, action)], axis=1), rules


def _bright(frames: Bytes, columns: tuple[float, float]) -> NDArray[np.float64]:
    """The share of passable ground in part of each frame: (N,)."""
    height, width = frames.shape[1:3]
    rows, across = ([round(share * size) for share in part] for part, size in ((HEIGHT, height), (columns, width)))
    ground = frames[:, rows[0] : rows[1], across[0] : across[1]]
    return np.asarray((ground > BRIGHT).all(axis=3).mean(axis=(1, 2)))
