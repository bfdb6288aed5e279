"""What every export has in common: nobody writes it meanwhile, and its files change together or not at all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from engines.basics.errors import DataError
from engines.basics.files import make_directory, remove_stale_temporaries, replace_together
from engines.basics.lock import RunLock
from engines.contract.rundir import RunDirectory
from engines.tasks import TaskContext
from engines.thresholds.review import SAVE_LOCK


@contextmanager
def alone(run: RunDirectory) -> Iterator[None]:
    """The export of `run` for oneself: nobody exports or saves thresholds meanwhile. Raises `DataError`."""
    make_directory(run.review)
    lock = RunLock(run.review / SAVE_LOCK)
    if not lock.acquire():
        raise DataError(
            f"{run.export} is being written right now, by another export or with new thresholds; export again."
        )
    try:
        remove_stale_temporaries(run.export)  # of an export that was killed
        yield
    finally:
        lock.release()


def replace_export(folder: Path, contents: Mapping[str, bytes], known: Collection[str]) -> None:
    """Make `contents`, by file name, the export in `folder`: all or nothing.

    known: every name that such an export may have; an older file of one that is not in `contents` is removed. Whatever
    else lies there stays. Raises OSError with the older files untouched.
    """
    make_directory(folder)
    replace_together({folder / name: content for name, content in contents.items()})
    for name in known:
        if name not in contents:
            (folder / name).unlink(missing_ok=True)


def log_files(context: TaskContext, folder: Path, names: Collection[str]) -> None:
    """A line for each file in `folder`, with its size."""
    for name in names:
        context.log(f"{folder / name}  {(folder / name).stat().st_size:,} bytes")


def as_json(content: object) -> bytes:
    """Indented JSON; numbers that are not finite become null."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
