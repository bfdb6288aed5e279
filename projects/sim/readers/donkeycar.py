"""A tub of a Donkeycar, as a folder or a .tar.gz: frames with steering and throttle, no IMU and no speed.

Its time stamps are those of a conversion, so frames are taken as `fps` per second. Labels: action alone, from the mean
steering and throttle of the `horizon` frames after each frame; nobody said anything of risk.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.basics.errors import DataError
from engines.basics.reading import decoded
from projects.sim.drives import About, Drive
from projects.sim.labels import ABSENT, LABELS, TELEMETRY
from projects.sim.readers.pictures import pictures
from projects.sim.readers.rules import action_ids, ahead, labelled

MANIFEST = "manifest.json"
LOOKED_AT = 10_000
"""Files of an archive that are looked at for it."""
IMAGE, ANGLE, THROTTLE = "cam/image_array", "user/angle", "user/throttle"
TURN, SLOW = 0.25, 0.2
"""Mean steering (of 1) from which on it is a turn; throttle under which it is slow."""
TURN_SHARE, SLOW_SHARE = 2 / 3, 0.1
"""Of the frames that turn least, and of those that are slowest, where the fixed rule gives one class."""
Read = Callable[[str], bytes]


def is_log(path: Path) -> bool:
    """Whether a folder is a tub, or a file an archive of one."""
    if not (path.is_file() and path.name.endswith((".tar.gz", ".tgz"))):
        return (path / MANIFEST).is_file()
    try:
        with tarfile.open(path) as content:
            return any(PurePosixPath(member.name).name == MANIFEST for member in islice(content, LOOKED_AT))
    except (tarfile.TarError, EOFError, OSError, zlib.error):
        return False


def read(path: Path, horizon: int, fps: float, tick: Callable[[], None]) -> Drive:
    """The drive in a tub. Raises `DataError`."""
    with _opened(path) as content:
        rows = _rows(content, path)
        if len(rows) <= horizon + 1:
            raise DataError(f"{path}: holds {len(rows)} frames, expected more than {horizon + 1} (horizon + 1).")
        frames = pictures([row[IMAGE] for row in rows], lambda name: content(f"images/{name}"), path, tick)
    steering, throttle = (np.array([float(row[key]) for row in rows]) for key in (ANGLE, THROTTLE))
    action, rule = _actions(ahead(steering, horizon, np.mean), ahead(throttle, horizon, np.mean), horizon)
    labels = np.full((len(rows), len(LABELS)), ABSENT, np.int8)
    labels[:, list(LABELS).index("action")] = labelled(action, len(rows))
    name = path.name.removesuffix(".tar.gz").removesuffix(".tgz")
    about = About(source="donkeycar", horizon=horizon, absent=TELEMETRY, rules=(rule,))
    return Drive(name, np.arange(len(rows)) / fps, np.zeros((len(rows), 8), np.float32), labels, frames, about)


def _actions(
    steering: NDArray[np.float64], throttle: NDArray[np.float64], horizon: int
) -> tuple[NDArray[np.int64], str]:
    def actions(turn: float, slow: float) -> NDArray[np.int64]:
        # a Donkeycar steers to the left with negative angles
        return action_ids(
            -steering, turn=turn, stop=abs(throttle) < 0.02, reverse=throttle < -0.02, slow=throttle < slow
        )

    turn, slow, how = TURN, SLOW, "fixed"
    if len(np.unique(actions(turn, slow))) == 1:
        turn, slow = float(np.quantile(abs(steering), TURN_SHARE)), float(np.quantile(throttle, SLOW_SHARE))
        how = "by quantiles"
    return actions(turn, slow), (
        f"action: mean controls of the next {horizon} frames, {how}: steering over {turn:.3g} a turn, throttle under "
        f"{slow:.3g} slow, none stop, negative reverse"
    )


@contextmanager
def _opened(path: Path) -> Iterator[Read]:
    """What reads a file of the tub by its name. Nothing of an archive is written anywhere."""
    if path.is_dir():
        yield lambda name: (path / name).read_bytes()
        return
    try:
        with tarfile.open(path) as archive:
            # in one pass: going back in a compressed archive reads it again from its start
            contents = {PurePosixPath(member.name): _content(archive, member) for member in archive if member.isfile()}
        roots = [name.parent for name in contents if name.name == MANIFEST]
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read as an archive ({error}); copy it again.") from None
    if len(roots) != 1:
        raise DataError(f"{path}: holds {len(roots)} tubs ({MANIFEST}), expected one.")
    yield lambda name: contents[roots[0] / name]


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None  # a plain file
    return file.read()


def _rows(content: Read, path: Path) -> list[dict[str, Any]]:
    """The records of all catalogs, without those that were deleted in the tub's own editor."""
    try:
        manifest = decoded(content(MANIFEST).splitlines()[4], dict[str, Any])
        names, deleted = [str(name) for name in manifest["paths"]], set(manifest["deleted_indexes"])
    except (msgspec.MsgspecError, IndexError, KeyError, TypeError, OSError) as error:
        raise DataError(
            f"{path}: {MANIFEST} is none of a version 2 tub ({error!r}); convert it with Donkeycar."
        ) from None
    rows: list[dict[str, Any]] = []
    for name in names:
        try:
            lines = content(name).splitlines()
        except (OSError, KeyError):
            raise DataError(f"{path}: {name} is missing, which {MANIFEST} names; copy the tub again.") from None
        for number, line in enumerate(lines, 1):
            row = _row(line, f"{path}: {name}:{number}")
            if row.get("_index") not in deleted:
                rows.append(row)
    return rows


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = decoded(line, dict[str, Any])
        if not all(isinstance(row[key], int | float) for key in (ANGLE, THROTTLE)) or not isinstance(row[IMAGE], str):
            raise KeyError(ANGLE)
    except (msgspec.MsgspecError, KeyError):
        raise DataError(
            f"{where}: expected a JSON object with {IMAGE}, {ANGLE} and {THROTTLE}; remove the line."
        ) from None
    return row
