"""`cockpit data parse LOG OUT --project sim`: logs of vehicles become drives, one file each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from engines.basics.errors import DataError
from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from engines.tasks.folder import output_folder
from projects.sim.drives import Drive, is_drive, write_drive
from projects.sim.labels import ABSENT, LABELS
from projects.sim.readers import comma, donkeycar, udacity

Kind = Literal["udacity", "donkeycar", "comma2k19"]
NOTES = "parsed.json"
LOGS = f"{udacity.LOG} (Udacity), {donkeycar.MANIFEST} or a .tar.gz of it (Donkeycar), or {comma.FOLDER} (comma2k19)"


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
    logs = _logs(order.source, order.kind)
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


def kind_of(path: Path) -> Kind | None:
    """Which kind of log a folder or file is; None for any other."""
    known: dict[Kind, Callable[[Path], bool]] = {
        "udacity": udacity.is_log, "donkeycar": donkeycar.is_log, "comma2k19": comma.is_log,
    }  # fmt: skip
    return next((kind for kind, is_log in known.items() if is_log(path)), None)


def why_not(path: str) -> str:
    """Empty for drives and for logs that can be parsed, else what was looked for in vain."""
    source = Path(path).expanduser()
    if is_drive(source) or kind_of(source) or any(kind_of(log) for log in source.glob("*")):
        return ""
    return f"no drive (.npz with telemetry and labels) and no log: {LOGS}"


def read_log(path: Path, kind: Kind, horizon: int, fps: float, tick: Callable[[], None]) -> Drive:
    """The drive of one log. Raises `DataError`."""
    match kind:
        case "udacity":
            return udacity.read(path, horizon, tick)
        case "donkeycar":
            return donkeycar.read(path, horizon, fps, tick)
        case "comma2k19":
            return comma.read(path, horizon, tick)


def _logs(source: Path, kind: Kind | None) -> dict[str, tuple[Path, Kind]]:
    """The logs at `source`, by the name that each drive gets."""
    if not source.exists():
        raise DataError(f"{source}: is not there, expected a log or a folder of logs.")
    own = kind or kind_of(source)
    if own is not None:
        return {_stem(source): (source, own)}
    found = {_stem(path): (path, one) for path in sorted(source.glob("*")) if (one := kind_of(path)) is not None}
    if not found:
        raise DataError(f"{source}: holds no log, expected {LOGS}, in it or in the folders below it.")
    return found


def _stem(path: Path) -> str:
    return path.absolute().name.removesuffix(".tar.gz").removesuffix(".tgz")


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
