"""Which kind of log a path is, and its drive. Free of tasks: the cockpit asks it whose data it has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from engines.basics.errors import DataError
from projects.sim.drives import Drive, is_drive
from projects.sim.readers import comma, donkeycar, udacity

Kind = Literal["udacity", "donkeycar", "comma2k19"]
LOGS = f"{udacity.LOG} (Udacity), {donkeycar.MANIFEST} or a .tar.gz of it (Donkeycar), or {comma.FOLDER} (comma2k19)"


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


def logs_at(source: Path, kind: Kind | None) -> dict[str, tuple[Path, Kind]]:
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
