"""A run as one file to carry elsewhere: an uncompressed tar of what says what it is and what came of it.

The same run gives the same bytes: entries in order, all with the run's own time and no owner. What is read is a file
that anybody may have made: `engines.runs.unbundle`.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

import msgspec

from engines.basics.errors import DataError
from engines.basics.files import DIRECTORY_MODE, FILE_MODE, replace_with
from engines.contract.rundir import RunDirectory
from engines.runs.saved import shard_files

ENDING = ".cockpit.tar"
EXTRAS = "bundle"
"""Folder in a bundle of what was drawn for it: tables and pictures."""
_WHOLE = ("attempts", "metrics", "review", "export")
_SINGLE = ("config_resolved.yaml", "events.jsonl", "commands.jsonl", "report.json", "logs/stdout.log")
LONGEST_NAME = 1000


def write_bundle(run: RunDirectory, out: Path, extras: Mapping[str, bytes], *, last: bool = False) -> list[str]:
    """Write the bundle of `run` to `out`, with `extras` by their names; gives the names of its checkpoints.

    `last`: with the checkpoint to resume from. Raises OSError with no file left, `DataError` for what is no run.
    """
    info = run.info
    record = msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(info, seal="")))
    wanted = [run.best] + [run.last] * (last or not run.best.is_file())
    checkpoints = [path.relative_to(run.path).as_posix() for path in wanted if path.is_file()]
    shards = _shards(run, checkpoints)
    names = [*checkpoints, *shards, *(name for name in _SINGLE if _is_plain(run.path / name)), *_files_below(run.path)]

    def write(file: IO[bytes]) -> None:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT, dereference=True) as archive:
            _add_folders(archive, info.id, [*names, *(f"{EXTRAS}/{name}" for name in extras)], info.created)
            _add_bytes(archive, f"{info.id}/run.json", record, info.created)
            for name, content in sorted(extras.items()):
                _add_bytes(archive, f"{info.id}/{EXTRAS}/{name}", content, info.created)
            for name in sorted(names):
                with open(run.path / name, "rb") as source:
                    _add(archive, f"{info.id}/{name}", source, os.fstat(source.fileno()).st_size, info.created)
        if _shards(run, checkpoints) != shards:
            raise DataError(f"{info.id} saved a checkpoint in shards meanwhile; bundle it again, or stop it first.")

    replace_with(out, write)
    return checkpoints


def _shards(run: RunDirectory, checkpoints: Iterable[str]) -> list[str]:
    return [file.relative_to(run.path).as_posix() for name in checkpoints for file in shard_files(run.path / name)]


def _files_below(path: Path) -> Iterator[str]:
    """Plain files of the folders that go along whole; a link is not followed."""
    for folder in _WHOLE:
        for place, folders, files in os.walk(path / folder):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in files:
                if _is_plain(file := Path(place, name)) and not name.startswith("."):
                    yield file.relative_to(path).as_posix()


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _add_folders(archive: tarfile.TarFile, root: str, names: list[str], created: float) -> None:
    folders = {root} | {f"{root}/{parent}" for name in names for parent in Path(name).parents if parent != Path()}
    for folder in sorted(folders):
        entry = _entry(folder, 0, created)
        entry.type, entry.mode = tarfile.DIRTYPE, DIRECTORY_MODE
        archive.addfile(entry)


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes, created: float) -> None:
    _add(archive, name, io.BytesIO(content), len(content), created)


def _add(archive: tarfile.TarFile, name: str, source: IO[bytes], size: int, created: float) -> None:
    """As many bytes as there were when it was opened: a log may grow meanwhile."""
    if len(name.encode()) > LONGEST_NAME:
        raise DataError(f"{name[:80]}… has a name of more than {LONGEST_NAME} bytes; rename it.")
    archive.addfile(_entry(name, size, created), source)


def _entry(name: str, size: int, created: float) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = size, FILE_MODE, int(max(0.0, created))
    return entry
