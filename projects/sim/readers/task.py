"""`cockpit data parse LOG OUT --project sim`: logs of vehicles become drives, one file each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from engines.tasks.folder import output_folder
from projects.sim.drives import Drive, write_drive
from projects.sim.labels import ABSENT, LABELS
from projects.sim.readers.kinds import Kind, logs_at, read_log

NOTES = "parsed.json"


class _Order(msgspec.Struct, forbid_unknown_fields=True):
    source: Path
    out: Path
    kind: Kind | None = None
    horizon: Annotated[int, Meta(ge=1, le=1000)] = 10
    fps: Annotated[float, Meta(gt=0, le=1000)] = 20.0


def parse(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Read each log and write its drive.

    arguments: source (a log, or a folder of logs), out (a new or empty folder), kind (else by what the log holds),
    horizon (10: frames after a window that its labels are made from), fps (20, of a Donkeycar tub). Raises `UserError`
    for a bad argument and `DataError` for a bad log, naming its line.
    """
    order = as_struct(arguments, _Order)
    logs = logs_at(order.source, order.kind)
    settings = {"kind": order.kind, "horizon": order.horizon, "fps": order.fps, "reader": 1}
    names = {f"{name}.npz" for name in logs}
    with output_folder(order.out, NOTES, settings, ours=names.__contains__) as folder:
        for name, (path, kind) in logs.items():
            if not folder.has(name, f"{name}.npz"):
                drive = read_log(path, kind, order.horizon, order.fps, _Meter(context, name))
                write_drive(order.out / f"{name}.npz", drive)
                folder.finish(name)
                for line in summary(drive):
                    context.log(line)
        folder.complete()
    context.progress(len(logs), len(logs), "logs")


class _Meter:
    """Counts the frames of a log for the progress shown."""

    def __init__(self, context: TaskContext, name: str) -> None:
        self._context, self._name, self._done = context, name, 0

    def __call__(self) -> None:
        self._done += 1
        self._context.progress(self._done, 0, f"frames of {self._name}")


def summary(drive: Drive) -> list[str]:
    """What became of a log, for the task's log."""
    about, (first, last) = drive.about, (drive.times[0], drive.times[-1])
    size = "no frames" if drive.frames is None else f"frames of {drive.frames.shape[2]} × {drive.frames.shape[1]}"
    lines = [f"{drive.name}: {len(drive)} rows in {last - first:.1f} s, {drive.rate:.1f} per second, {size}"]
    for word, names in (("derived, not measured", about.derived), ("absent, 0 throughout", about.absent)):
        if names:
            lines.append(f"  telemetry {word}: {', '.join(names)}")
    for place, (task, classes) in enumerate(LABELS.items()):
        ids = drive.labels[:, place]
        counts = np.bincount(ids[ids != ABSENT], minlength=len(classes))
        said = ", ".join(f"{name} {count}" for name, count in zip(classes, counts, strict=True))
        lines.append(f"  {task}: {said if counts.any() else 'no labels'}")
    return lines + [f"  {rule}" for rule in about.rules]
