"""Drives on disk: a folder of .npz files, one row per frame, as `cockpit data parse` and `data make` write them.

    times      (N,) float64, seconds            labels     (N, 3) int8: risk, reason, action; -1 where nobody gave it
    telemetry  (N, 8) float32, absent values 0  frames     (N, H, W, 3) uint8, where there are any
    about      a JSON text: where it comes from, what is derived or absent, how many frames ahead a label looks

A label of frame i says what comes after it, within `horizon` frames: it belongs to the window that ends at i.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.basics import npz
from engines.basics.errors import DataError
from engines.basics.files import replace_with
from engines.basics.reading import decoded
from projects.sim.labels import ABSENT, LABELS, TELEMETRY

if TYPE_CHECKING:
    from projects.sim.config import SimConfig

Floats = NDArray[np.float32]
Times = NDArray[np.float64]
Bytes = NDArray[np.uint8]
Ids = NDArray[np.int8]


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What the arrays of a drive do not say."""

    source: str
    """Kind of log it was made from."""
    horizon: int
    """Frames after a window that its labels were made from."""
    derived: tuple[str, ...] = ()
    """Telemetry that no sensor measured, computed from others."""
    absent: tuple[str, ...] = ()
    """Telemetry that is not known, 0 throughout."""
    rules: tuple[str, ...] = ()
    """How each label was made, a sentence each."""


@dataclass(frozen=True)
class Drive:
    """One drive; the module says what its arrays hold."""

    name: str
    times: Times
    telemetry: Floats
    labels: Ids
    frames: Bytes | None
    about: About

    def __len__(self) -> int:
        return len(self.times)

    @property
    def rate(self) -> float:
        """Frames per second, the median."""
        return 1 / float(np.median(np.diff(self.times)))


def drive_paths(folder: Path) -> list[Path]:
    """The drives in a folder, or the file itself. Raises `DataError` where there is none."""
    folder = folder.expanduser()
    paths = [folder] if folder.is_file() else sorted(folder.glob("*.npz"))
    if not paths:
        raise DataError(
            f"{folder}: holds no drive (NAME.npz), expected what `cockpit data parse LOG {folder} --project sim` or "
            f"`cockpit data make sim {folder}` writes."
        )
    return paths


def is_drive(path: Path) -> bool:
    """Whether a file, or the first .npz of a folder, says of itself that it is a drive."""
    try:
        with zipfile.ZipFile(drive_paths(path)[0]) as archive:
            return {"about.npy", "telemetry.npy", "labels.npy"} <= set(archive.namelist())
    except (DataError, OSError, ValueError, zipfile.BadZipFile):
        return False


def files(cfg: SimConfig) -> list[Path]:
    """What a config's data is read from, for the record of a run."""
    folder = Path(cfg.data.path).expanduser()
    if cfg.data.train is None:
        return drive_paths(folder)
    parts = [folder / name for name in (cfg.data.train, cfg.data.validation) if name]
    return [path for part in parts for path in ([part] if part.is_file() else sorted(part.glob("*.*")))]


def write_drive(path: Path, drive: Drive) -> None:
    """Write a drive, whole or not at all. Raises OSError."""
    arrays: dict[str, Any] = {"times": drive.times, "telemetry": drive.telemetry, "labels": drive.labels}
    arrays["about"] = np.array(msgspec.json.encode(drive.about).decode())
    if drive.frames is not None:
        arrays["frames"] = drive.frames

    def write(file: IO[bytes]) -> None:
        np.savez(file, allow_pickle=False, **arrays)

    replace_with(path, write)


def read_drive(path: Path) -> Drive:
    """The drive in a file. Raises `DataError` for one that is damaged, of another kind, or does not fit together."""
    try:
        arrays = npz.arrays_in(path)
        about = decoded(str(arrays["about"]).encode(), About)
    except KeyError:
        raise DataError(f"{path}: holds no `about`, so it is no drive; make it with `cockpit data parse`.") from None
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise DataError(f"{path}: cannot be read as a drive ({error}); make it again.") from None
    count = len(arrays["times"]) if "times" in arrays and arrays["times"].ndim == 1 else -1
    _expect(path, arrays, "times", np.float64, (count,))
    _expect(path, arrays, "telemetry", np.float32, (count, len(TELEMETRY)))
    _expect(path, arrays, "labels", np.int8, (count, len(LABELS)))
    frames = arrays.get("frames")
    if frames is not None:
        _expect(path, arrays, "frames", np.uint8, (count, *frames.shape[1:3], 3))
    if count < 2 or not (np.diff(arrays["times"]) > 0).all():
        raise DataError(f"{path}: times of {max(count, 0)} frames, expected at least two that only grow.")
    drive = Drive(path.stem, arrays["times"], arrays["telemetry"], arrays["labels"], frames, about)
    _check_values(path, drive)
    return drive


def _expect(path: Path, arrays: dict[str, Any], name: str, kind: type, shape: Sequence[int]) -> None:
    found = arrays.get(name)
    if found is None or found.shape != tuple(shape) or found.dtype != kind:
        said = "is missing" if found is None else f"is {found.dtype} {found.shape}"
        wanted = ", ".join("N" if length < 0 else str(length) for length in shape)
        raise DataError(f"{path}: {name} {said}, expected {np.dtype(kind)} ({wanted}); make the drive again.")


def _check_values(path: Path, drive: Drive) -> None:
    if not np.isfinite(drive.telemetry).all():
        row, column = np.argwhere(~np.isfinite(drive.telemetry))[0]
        raise DataError(f"{path}: telemetry {TELEMETRY[column]} of frame {row} is not a number; make the drive again.")
    for place, (task, names) in enumerate(LABELS.items()):
        ids = drive.labels[:, place]
        if len(unknown := ids[(ids < ABSENT) | (ids >= len(names))]):
            raise DataError(
                f"{path}: {task} label {unknown[0]} is not known, expected 0 to {len(names) - 1} "
                f"({', '.join(names)}), or {ABSENT} where there is none."
            )
