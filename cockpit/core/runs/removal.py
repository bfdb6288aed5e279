"""Deleting runs: gone at once or not at all, never one that is alive."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from cockpit.core.text import plain
from engines.basics.errors import UserError
from engines.basics.lock import RunLock, lock_holder
from engines.contract.rundir import RunDirectory

_LEFTOVER = ".deleted"


@dataclass(frozen=True)
class Removal:
    """What deleting one entry of the runs folder would take away."""

    path: Path
    size: int
    """Bytes on the disk; 0 for a link."""
    target: Path | None = None
    """Of an entry that is a link: where the run's files are, and stay."""


def look(path: Path) -> Removal:
    """What deleting `path` would take away. Walks its tree: not for the event loop."""
    if path.is_symlink():
        return Removal(path, 0, path.parent / os.readlink(path))
    return Removal(path, _size(path))


def _size(path: Path) -> int:
    """Bytes that the tree occupies; a file with several names in it (last.pt and best.pt) counts once."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            with contextlib.suppress(OSError):  # a live neighbour may replace its files meanwhile
                status = os.lstat(os.path.join(folder, name))
                if (status.st_dev, status.st_ino) not in seen:
                    seen.add((status.st_dev, status.st_ino))
                    total += status.st_blocks * 512
    return total


def remove(path: Path) -> None:
    """Delete a run; of one linked into the runs folder only the link, its files are its owner's.

    It leaves the list in one step, by a rename, under its lock; then its files are deleted. What a crash leaves of them
    is for `remove_leftovers`. Raises `UserError` for a live run and for what cannot be deleted.
    """
    try:
        _remove_link(path) if path.is_symlink() else _remove_tree(path)
    except FileNotFoundError:
        raise UserError(f"{plain(path.name)} is gone already: something else deleted it.") from None
    except OSError as error:
        raise UserError(
            f"{plain(path.name)} cannot be deleted ({error.strerror}: {error.filename}); check its permissions."
        ) from None


def _remove_link(path: Path) -> None:
    if path.exists() and lock_holder(path / "engine.lock") is not None:
        raise _alive(path)
    path.unlink()


def _remove_tree(path: Path) -> None:
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_LEFTOVER}")
    lock = RunLock(RunDirectory(path).lock)
    if not lock.acquire():
        raise _alive(path)
    try:
        os.rename(path, hidden)
    finally:
        lock.release()
    # Whoever asks about the lock from this process, as a poller does, releases it: was it taken before the rename?
    if lock_holder(hidden / "engine.lock") is not None:
        os.rename(hidden, path)
        raise _alive(path)
    try:
        shutil.rmtree(hidden)
    except OSError as error:
        raise UserError(
            f"{plain(path.name)} is off the list, but some of its files cannot be deleted ({error.strerror}: "
            f"{error.filename}); the cockpit tries again when it next opens."
        ) from None


def _alive(path: Path) -> UserError:
    return UserError(f"{plain(path.name)} is live: stop it before deleting it.")


def remove_leftovers(folder: Path) -> None:
    """Delete what is left of runs whose deletion was interrupted; what cannot be deleted waits for the next time."""
    for leftover in folder.glob(f".*{_LEFTOVER}"):
        shutil.rmtree(leftover, ignore_errors=True)
