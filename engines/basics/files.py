"""Durable files: replaced whole or not at all, private to their owner."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
USERS_MODE = 0o666
"""Of files that a user asked for by name: less what their umask takes away."""


def make_directory(path: Path) -> None:
    """Make `path` and its missing parents, all private to the owner (mkdir's own `parents` would be open to all)."""
    if not path.parent.exists():
        make_directory(path.parent)
    path.mkdir(mode=DIRECTORY_MODE, exist_ok=True)


def sync_file(path: Path) -> None:
    """Make what was written into the file durable."""
    _sync(path, os.O_RDONLY)


def sync_directory(path: Path) -> None:
    """Make renames in `path` durable."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def temporary_name(path: Path) -> Path:
    """A fresh name beside `path`, recognised by `remove_stale_temporaries`."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def replace_with(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Let `write` fill a temporary file beside `path`, make it durable and rename it over `path`.

    Raises OSError (disk full, read-only …) with the old file untouched and no temporary left.
    """
    with _filled(path, write) as temporary:
        os.replace(temporary, path)
    sync_directory(path.parent)


@contextlib.contextmanager
def _filled(path: Path, write: Callable[[IO[bytes]], None], mode: int = FILE_MODE) -> Iterator[Path]:
    """A durable temporary file beside `path` that `write` has filled; gone afterwards where nobody renamed it."""
    temporary = temporary_name(path)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise


def _write_bytes(content: bytes) -> Callable[[IO[bytes]], None]:
    def write(file: IO[bytes]) -> None:
        file.write(content)

    return write


def replace_bytes(path: Path, content: bytes) -> None:
    """Atomically replace `path` with `content`."""
    replace_with(path, _write_bytes(content))


def write_for_user(path: Path, content: bytes) -> None:
    """Atomically make or replace a file that the user named: with the permissions it had, else those of their umask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _filled(path, _write_bytes(content), USERS_MODE) as temporary:
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(path.stat().st_mode & 0o777)
        os.replace(temporary, path)
    sync_directory(path.parent)


def replace_together(contents: Mapping[Path, bytes]) -> None:
    """Atomically replace several files: all are written and durable before the first one is renamed.

    Raises OSError with all old files untouched. Only a kill between two renames leaves some old and some new, each
    whole; readers that need the set notice by a digest in it.
    """
    with contextlib.ExitStack() as stack:
        temporaries = {
            path: stack.enter_context(_filled(path, _write_bytes(content))) for path, content in contents.items()
        }
        for path, temporary in temporaries.items():
            os.replace(temporary, path)
    for folder in {path.parent for path in contents}:
        sync_directory(folder)


def replace_by_link(source: Path, target: Path) -> None:
    """Make `target` the same file as `source` in one step: by hard link and rename, or a copy where that fails."""
    temporary = temporary_name(target)
    try:
        os.link(source, temporary)
    except OSError:
        with open(source, "rb") as original:
            replace_with(target, lambda copy: shutil.copyfileobj(original, copy))
        return
    os.replace(temporary, target)
    # rename() of two links to one file does nothing and leaves the temporary name behind
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()
    sync_directory(target.parent)


def remove_stale_temporaries(folder: Path) -> None:
    """Remove what an interrupted `replace_*` left in `folder`."""
    for stale in folder.glob(".*.tmp"):
        with contextlib.suppress(FileNotFoundError):
            stale.unlink()
