"""Copies data from a slow volume to a local disk before it is read (`data.stage`), and only what is not there yet.

A file counts as copied where size and time of change agree. Runs that stage the same data wait for one another.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from engines.basics.amounts import size
from engines.basics.errors import DataError
from engines.basics.files import make_directory, remove_stale_temporaries, temporary_name
from engines.basics.lock import alone_with
from engines.contract.settings import RunConfig
from engines.runs import fingerprint

CHUNK = 8 << 20
WAIT_SECONDS = 6 * 3600.0
SPARE_BYTES = 1 << 28
MEGABYTE = 1_000_000
Progress = Callable[[int, int, str], None]
"""Called as `progress(done, total, unit)`; may raise, which ends the copy where it is."""


def staged(settings: RunConfig, progress: Progress, check: Callable[[], object]) -> RunConfig:
    """The settings with `data.path` on the local disk, where `data.stage` asks for that, and the data is there.

    `check` is called while another run copies the same data, and may raise, which ends the wait.
    Raises `DataError` where it does not fit, or cannot be read or written.
    """
    if settings.data.stage is None:
        return settings
    source = Path(settings.data.path).expanduser().absolute()
    name = f"{source.name}-{hashlib.blake2b(str(source).encode(), digest_size=4).hexdigest()}"
    place = Path(settings.data.stage).expanduser().absolute() / name
    root = source if source.is_dir() else source.parent
    found = {path.relative_to(root).as_posix(): path for path in fingerprint.below(settings)}
    try:
        make_directory(place)
        with alone_with(place, WAIT_SECONDS, check):
            _bring(found, place, progress)
    except OSError as error:
        raise DataError(
            f"The data of {source} cannot be copied to {place} ({error.strerror or error}); choose another data.stage, "
            "or none."
        ) from None
    local = place if source.is_dir() else place / source.name
    return settings.model_copy(update={"data": settings.data.model_copy(update={"path": str(local)})})


def _bring(found: Mapping[str, Path], place: Path, progress: Progress) -> None:
    """Make `place` hold exactly the files `found`, by their names in it."""
    for folder in [place, *(path for path in place.rglob("*") if path.is_dir())]:
        remove_stale_temporaries(folder)
        for file in folder.iterdir():
            if not file.is_dir() and file.relative_to(place).as_posix() not in found:
                file.unlink()
    missing = {name: path for name, path in found.items() if not _is_copied(path, place / name)}
    total, free = sum(path.stat().st_size for path in missing.values()), shutil.disk_usage(place).free
    if total + SPARE_BYTES > free:
        raise DataError(f"data.stage: {size(total)} are to be copied and {size(free)} are free at {place}; free some.")
    done = 0
    for name, path in missing.items():
        done = _copy(path, place / name, done, total, progress)


def _is_copied(source: Path, copy: Path) -> bool:
    try:
        there, here = source.stat(), copy.stat()
    except FileNotFoundError:
        return False
    return (there.st_size, there.st_mtime_ns) == (here.st_size, here.st_mtime_ns)


def _copy(source: Path, copy: Path, done: int, total: int, progress: Progress) -> int:
    """Copy a file whole or not at all; gives the bytes done after it."""
    make_directory(copy.parent)
    temporary = temporary_name(copy)
    try:
        with open(source, "rb") as reading, open(temporary, "xb") as writing:
            status = os.fstat(reading.fileno())
            while chunk := reading.read(CHUNK):
                writing.write(chunk)
                done += len(chunk)
                progress(done // MEGABYTE, max(1, total // MEGABYTE), "MB copied")
        os.utime(temporary, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.replace(temporary, copy)
    finally:
        temporary.unlink(missing_ok=True)
    return done
