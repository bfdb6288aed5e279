"""`cockpit data stats`: what lies in a folder of drives."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engines.contract.tables import Cell, Table
from projects.sim.drives import drive_paths, read_drive
from projects.sim.labels import LABELS
from projects.sim.split import support


def tables(path: str) -> dict[str, Table]:
    """Every drive, and how often each class occurs in all of them. Raises `DataError`."""
    drives = [read_drive(file) for file in drive_paths(Path(path))]
    rows: list[tuple[Cell, ...]] = []
    for drive in drives:
        seconds = float(drive.times[-1] - drive.times[0])
        size = "none" if drive.frames is None else f"{drive.frames.shape[2]} × {drive.frames.shape[1]}"
        absent, derived = (", ".join(names) for names in (drive.about.absent, drive.about.derived))
        rows.append(
            (drive.name, drive.about.source, len(drive), round(seconds, 1), round(drive.rate, 1), size, absent, derived)
        )
    counts = support(np.concatenate([drive.labels for drive in drives]))
    classes = tuple((task, name, counts[task][name]) for task, names in LABELS.items() for name in names)
    rules = sorted({rule for drive in drives for rule in drive.about.rules})
    columns = ("drive", "source", "frames", "seconds", "per second", "picture", "absent", "derived")
    return {
        "drives": Table(columns, tuple(rows), "Absent telemetry is 0 throughout; derived telemetry was not measured."),
        "classes": Table(("task", "class", "frames"), classes, " ".join(f"{rule}." for rule in rules)),
    }
