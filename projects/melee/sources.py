"""Where replays lie: files, packed or not, folders and zips of them, slippi-ai's tables. Nothing is unpacked whole."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import msgspec

from engines.basics.errors import DataError
from engines.basics.reading import read_json

UNPACKED: dict[str, Callable[[IO[bytes]], Any]] = {".xz": lzma.LZMAFile, ".gz": gzip.open}
MEMORY = Path("/dev/shm")
NOTES = "melee.json"
"""In a store of games: what made it, and which shards are finished (`engines.tasks.folder`)."""
META = "meta.json"
"""Beside slippi-ai's tables, which have no ending: it names them."""


@dataclass(frozen=True)
class Source:
    """One replay: a file, or a member of a zip. name: where it lies below what was asked for, by which it is known."""

    path: Path
    member: str | None
    name: str

    @property
    def title(self) -> str:
        """The name without its endings, by which a config chooses games."""
        return _without_endings(self.name)

    @property
    def is_replay(self) -> bool:
        """Whether it is a .slp, and not a table."""
        return _plain(self.name).suffix == ".slp"


def sources(source: Path) -> Iterator[Source]:
    """Every replay in a file, a zip or a folder, by name. Raises `DataError` where there is none."""
    if source.is_dir():
        found = _below(source)
        first = next(found, None)
        if first is None:
            raise DataError(
                f"{source}: holds no replay, expected .slp, .slp.xz, .slp.gz, a .zip of them, or slippi-ai's tables."
            )
        yield first
        yield from found
    elif not source.is_file():
        raise DataError(f"{source}: does not exist, expected a replay or a folder of replays.")
    elif source.suffix == ".zip":
        yield from _members(source, source.name)
    elif _is_replay(source.name) or source.suffix == ".parquet" or source.name in _tables(source.parent):
        yield Source(source, None, source.name)
    else:
        raise DataError(f"{source}: is no replay, expected .slp, .slp.xz, .slp.gz, .zip or .parquet.")


def reads(path: str | Path) -> str:
    """Empty where replays or a store of games lie at `path`, else what was looked for in vain."""
    place = Path(path)
    if (place / NOTES).is_file():
        return ""
    try:
        found = next(sources(place), None)
    except (DataError, OSError):
        found = None
    return "" if found else "no replays (.slp, .slp.xz, .slp.gz, .zip), slippi-ai tables (.parquet) or store of games"


@contextlib.contextmanager
def on_disk(source: Source) -> Iterator[Path]:
    """The replay as a file of its own, which is what peppi reads: the file itself, or a copy in memory meanwhile."""
    packed = _plain(source.name).name != PurePosixPath(source.name).name
    if source.member is None and not packed:
        yield source.path
        return
    folder = MEMORY if MEMORY.is_dir() else None
    with tempfile.NamedTemporaryFile(suffix=".slp", dir=folder) as copy, contextlib.ExitStack() as stack:
        if source.member is not None:
            archive = stack.enter_context(zipfile.ZipFile(source.path))
            file: IO[bytes] = stack.enter_context(archive.open(source.member))
        else:
            file = stack.enter_context(source.path.open("rb"))
        if packed:
            file = stack.enter_context(UNPACKED[PurePosixPath(source.name).suffix](file))
        shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        yield Path(copy.name)


def _below(folder: Path) -> Iterator[Source]:
    """Folders in turn, so that a hundred thousand names are never held at once but those of one folder."""
    tables = _tables(folder)
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            for one in () if path.is_symlink() else _below(path):
                yield Source(one.path, one.member, f"{path.name}/{one.name}")
        elif path.suffix == ".zip":
            yield from _members(path, path.name)
        elif _is_replay(path.name) or path.suffix == ".parquet" or path.name in tables:
            yield Source(path, None, path.name)


def _members(path: Path, name: str) -> Iterator[Source]:
    """The replays in a zip; of one that is damaged the zip itself, which whoever opens it finds out."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted(info.filename for info in archive.infolist() if _is_replay(info.filename))
    except (zipfile.BadZipFile, OSError):
        yield Source(path, "", name)
        return
    for member in members:
        yield Source(path, member, f"{name}/{member}")


def _tables(folder: Path) -> set[str]:
    """File names that slippi-ai's list of games in `folder` gives."""
    try:
        games = read_json(folder / META, list[dict[str, object]])
    except (OSError, msgspec.MsgspecError):
        return set()
    return {str(game["slp_md5"]) for game in games if "slp_md5" in game}


def _plain(name: str) -> PurePosixPath:
    """The name without the ending of a compression."""
    path = PurePosixPath(name)
    return path.with_suffix("") if path.suffix in UNPACKED else path


def _is_replay(name: str) -> bool:
    return _plain(name).suffix == ".slp"


def _without_endings(name: str) -> str:
    path = _plain(name)
    return str(path.with_suffix("") if path.suffix in (".slp", ".parquet") else path)
