"""Reads a bundle that anybody may have made: plain files in folders below one name, or nothing at all.

Entries are read one header at a time, so a hostile file takes no more memory than one header and no more disk than it
has bytes: it is not compressed, and sparse files are refused like every other kind that is no file and no folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from engines.basics import files
from engines.basics.amounts import size as size_of
from engines.basics.errors import DataError, UserError
from engines.basics.lock import ELSEWHERE
from engines.contract.rundir import RunDirectory
from engines.runs.bundle import LONGEST_NAME
from engines.runs.store import runs_folder

BLOCK = tarfile.BLOCKSIZE
MOST_ENTRIES = 100_000
DEEPEST = 8
SPARE_BYTES = 64 << 20
"""Left free on the disk."""
_ROOT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}")
_PART = re.compile(r"[^\x00-\x1f\x7f/\\]{1,255}")
_COPY = 1 << 20
_LEFTOVER = ".unbundling"
STALE_SECONDS = 86400.0


@dataclass(frozen=True)
class Entry:
    """A file or a folder of a bundle."""

    parts: tuple[str, ...]
    folder: bool
    offset: int
    size: int


def unbundle(file: Path) -> RunDirectory:
    """Make a run of the bundle at `file` in the runs folder. Its user has to trust it before it is resumed.

    Raises `UserError` for what is no bundle, or a hostile one, with nothing left of it; OSError for a full disk.
    """
    folder = runs_folder()
    files.make_directory(folder)
    _remove_leftovers(folder)
    with _opened(file) as source:
        entries = list(read_entries(source, file))
        root = entries[0].parts[0] if entries else ""
        if f"{root}/run.json" not in {"/".join(entry.parts) for entry in entries}:
            raise _no_bundle(file, "it has no run.json")
        total, free = sum(entry.size for entry in entries), shutil.disk_usage(folder).free
        if total + SPARE_BYTES > free:
            raise DataError(f"{file} needs {size_of(total)} and {size_of(free)} are free at {folder}; free some space.")
        if os.path.lexists(folder / root):
            raise UserError(f"{folder} already has {root}; delete that first, or set COCKPIT_RUNS to another folder.")
        hidden = folder / f".{root}.{secrets.token_hex(4)}{_LEFTOVER}"
        hidden.mkdir(mode=files.DIRECTORY_MODE)
        try:
            for entry in entries:
                _extract(source, entry, hidden)
            _adopt(RunDirectory(hidden / root), root, file)
            os.rename(hidden / root, folder / root)
        finally:
            shutil.rmtree(hidden, ignore_errors=True)
    return RunDirectory(folder / root)


def _opened(file: Path) -> IO[bytes]:
    try:
        if not file.is_file():
            raise UserError(f"{file} is not a file; expected what `cockpit bundle` wrote.")
        return open(file, "rb")
    except OSError as error:
        raise UserError(f"{file} cannot be read ({error.strerror}).") from None


def _remove_leftovers(folder: Path) -> None:
    """What a kill left of an earlier one, not of one that is at work."""
    for leftover in folder.glob(f".*{_LEFTOVER}"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(leftover, ignore_errors=True)


def read_entries(source: IO[bytes], file: Path) -> Iterator[Entry]:
    """Every entry, checked before anything is written. Raises `UserError` for one that a bundle does not have."""
    seen: dict[tuple[str, ...], Entry] = {}
    end, offset, long_name = source.seek(0, os.SEEK_END), 0, ""
    while True:
        source.seek(offset)
        block = source.read(BLOCK)
        if block == bytes(BLOCK):
            return
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.TarError:
            raise _no_bundle(file, f"a damaged header at byte {offset}") from None
        offset += BLOCK
        if not 0 <= header.size <= end - offset:
            raise _no_bundle(file, f"it is cut short at {header.name[:80]!r}")
        if header.type == tarfile.GNUTYPE_LONGNAME and header.size <= LONGEST_NAME + 1:
            long_name = source.read(header.size).rstrip(b"\0").decode(errors="surrogateescape")
        else:
            entry = _checked(header, long_name or header.name, offset, file)
            parents = (seen.get(entry.parts[:depth]) for depth in range(1, len(entry.parts)))
            first = next(iter(seen), entry.parts)
            if entry.parts in seen or first[0] != entry.parts[0] or any(one and not one.folder for one in parents):
                raise _no_bundle(file, f"{'/'.join(entry.parts)!r} does not fit what is before it")
            seen[entry.parts] = entry
            if len(seen) > MOST_ENTRIES:
                raise _no_bundle(file, f"it has more than {MOST_ENTRIES:,} entries")
            yield entry
            long_name = ""
        offset += -(-header.size // BLOCK) * BLOCK


def _checked(header: tarfile.TarInfo, name: str, offset: int, file: Path) -> Entry:
    """The entry of a header. Raises `UserError` for a link, a device, a sparse file, a name that leads elsewhere."""
    folder = header.type == tarfile.DIRTYPE
    if not folder and header.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        raise _no_bundle(file, f"{name[:80]!r} is neither a file nor a folder")
    parts = tuple(name.rstrip("/").split("/"))
    bad = not _ROOT.fullmatch(parts[0]) or any(part in ("", ".", "..") or not _PART.fullmatch(part) for part in parts)
    if bad or len(parts) > DEEPEST or (len(parts) == 1 and not folder) or (folder and header.size):
        raise _no_bundle(file, f"{name[:80]!r} is not a name that a run has")
    return Entry(parts, folder, offset, header.size)


def _extract(source: IO[bytes], entry: Entry, into: Path) -> None:
    """Write it below `into`, which is new and this user's alone."""
    place = into.joinpath(*entry.parts)
    files.make_directory(place if entry.folder else place.parent)
    if entry.folder:
        return
    source.seek(entry.offset)
    left = entry.size
    with open(place, "xb", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW, files.FILE_MODE)) as target:
        while left:
            if not (piece := source.read(min(left, _COPY))):
                raise DataError(f"{'/'.join(entry.parts)} became shorter while it was read; copy the bundle again.")
            target.write(piece)
            left -= len(piece)
        os.fsync(target.fileno())


def _adopt(run: RunDirectory, root: str, file: Path) -> None:
    """Make what was extracted a run of nobody here. Raises `UserError` where it is none."""
    try:
        info = run.info
    except DataError:
        raise _no_bundle(file, "its run.json is no record of a run") from None
    if info.id != root:
        raise _no_bundle(file, f"its run.json is of {info.id[:80]!r}")
    run.make()
    run.lock.with_name(ELSEWHERE).unlink(missing_ok=True)  # nobody holds it
    run.write_info(msgspec.structs.replace(info, seal=""))


def _no_bundle(file: Path, why: str) -> UserError:
    return UserError(f"{file} is not a bundle of a run: {why}; nothing was taken from it.")
