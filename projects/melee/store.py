"""The store of games: memory-mapped shards of frames and items, each with a small file that says what is in it.

00000.frames.npy  rows of layout.FRAME, game after game       00000.items.npy  rows of layout.ITEM
00000.json        its games, and the replays before them that were left out
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.basics import npz
from engines.basics.errors import DataError
from engines.basics.files import replace_bytes, replace_with
from engines.basics.reading import read_json
from projects.melee.game import Game, Reason
from projects.melee.layout import FRAME, ITEM
from projects.melee.sources import NOTES

Kind = Literal["frames", "items"]
FORMAT = 1
SHARD_ROWS = 500_000
"""A shard is closed after this many frames: 66 MB of them."""
OPEN_FILES = 256
"""Memory-mapped at a time: each takes a file descriptor, and a store of 100,000 games has some thousand files."""
ADVICE_BYTES = 1 << 18
"""Asked for at a time: kernels drop what is beyond a disk's longest request."""
_NAME = re.compile(r"\d{5}\.(frames\.npy|items\.npy|json)")


class StoredGame(msgspec.Struct, frozen=True):
    """A game in a shard: its rows and items there, and facts of it. No name of a player is kept.

    digest: of what happened in it, by which a copy is known.
    """

    name: str
    source: str
    first_row: int
    frames: int
    first_item: int
    items: int
    stage: int
    external_stage: int | None
    characters: tuple[int, int]
    version: str
    digest: str
    missing: tuple[str, ...] = ()


class LeftOut(msgspec.Struct, frozen=True):
    """A replay that is not in the store."""

    source: str
    reason: Reason
    text: str


class Contents(msgspec.Struct):
    """What a shard's own file says. `seen` are all replays that were looked at for it, in their order."""

    games: list[StoredGame] = []
    left: list[LeftOut] = []

    @property
    def seen(self) -> Iterator[str]:
        yield from (game.source for game in self.games)
        yield from (one.source for one in self.left)


def shard_files(number: int) -> tuple[str, ...]:
    """The names of a shard's files."""
    return tuple(f"{number:05d}.{kind}" for kind in ("frames.npy", "items.npy", "json"))


def is_ours(name: str) -> bool:
    """Whether a store may hold a file with that name."""
    return _NAME.fullmatch(name) is not None


class ShardWriter:
    """Gathers games for one shard and writes it, whole and always with the same bytes."""

    def __init__(self) -> None:
        self.contents = Contents()
        self.rows = 0
        self._items = 0
        self._games: list[Game] = []

    def add(self, name: str, source: str, game: Game) -> None:
        """Take a game over: its rows are counted from the shard's first item now."""
        game.frames["first_item"] += self._items
        self._games.append(game)
        first, second = game.frames[0]["players"]["character"].tolist()
        self.contents.games.append(
            StoredGame(
                name=name, source=source, first_row=self.rows, frames=len(game.frames), first_item=self._items,
                items=len(game.items), stage=game.stage, external_stage=game.external_stage,
                characters=(first, second), version=game.version, digest=game.digest,
                missing=game.missing,
            )
        )  # fmt: skip
        self.rows += len(game.frames)
        self._items += len(game.items)

    def leave(self, source: str, reason: Reason, text: str) -> None:
        self.contents.left.append(LeftOut(source, reason, text))

    @property
    def is_empty(self) -> bool:
        return not (self.contents.games or self.contents.left)

    def write(self, folder: Path, shard: str) -> None:
        """Write the three files. Raises OSError."""
        frames, items = [game.frames for game in self._games], [game.items for game in self._games]
        replace_with(folder / f"{shard}.frames.npy", partial(_write_npy, FRAME, frames))
        replace_with(folder / f"{shard}.items.npy", partial(_write_npy, ITEM, items))
        content = msgspec.json.format(msgspec.json.encode(self.contents))
        replace_bytes(folder / f"{shard}.json", content + b"\n")


def _write_npy(dtype: np.dtype[Any], parts: Sequence[NDArray[Any]], file: IO[bytes]) -> None:
    """The parts one after the other as one array in numpy's form, none of them copied."""
    shape = (sum(len(part) for part in parts),)
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    for part in parts:
        file.write(part.view(np.uint8).data)


@dataclass(frozen=True)
class Placed:
    """A game and where its frames lie among all of the store."""

    game: StoredGame
    shard: int
    first: int


class Store:
    """The games of a store, and their rows. Raises `DataError` where it is damaged, unfinished or none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        names = _finished(path)
        self.shards = [path / name for name in names]
        self.contents = [_contents(path / f"{name}.json") for name in names]
        self._mapped = lru_cache(OPEN_FILES)(self._map)
        self.rows: list[int] = []
        """Frames of each shard."""
        self.games: list[Placed] = []
        first = 0
        for shard, contents in enumerate(self.contents):
            self.games += [Placed(game, shard, first + game.first_row) for game in contents.games]
            self.rows.append(sum(game.frames for game in contents.games))
            first += self.rows[-1]

    def frames(self, shard: int) -> NDArray[Any]:
        """The rows of a shard, memory-mapped: (rows,) of `FRAME`."""
        return self._mapped(shard, "frames")

    def items(self, shard: int) -> NDArray[Any]:
        """The items of a shard, memory-mapped: (items,) of `ITEM`."""
        return self._mapped(shard, "items")

    def game(self, place: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Frames and items of one game; `first_item` counts from the shard's first item."""
        placed = self.games[place]
        first = placed.game.first_row
        return self.frames(placed.shard)[first : first + placed.game.frames], self.items(placed.shard)

    def will_read(self, shard: int, kind: Kind, first: int, stop: int) -> None:
        """Have rows `first` to before `stop` read into the page cache meanwhile, where the system can be asked."""
        array = self._mapped(shard, kind)
        if not (hasattr(os, "posix_fadvise") and isinstance(array, np.memmap)):
            return
        begins, size = array.offset + first * array.itemsize, (stop - first) * array.itemsize
        with self._path(shard, kind).open("rb") as file:
            for done in range(0, size, ADVICE_BYTES):
                length = min(ADVICE_BYTES, size - done)
                os.posix_fadvise(file.fileno(), begins + done, length, os.POSIX_FADV_WILLNEED)

    def _path(self, shard: int, kind: Kind) -> Path:
        return self.shards[shard].with_name(f"{self.shards[shard].name}.{kind}.npy")

    def _map(self, shard: int, kind: Kind) -> NDArray[Any]:
        dtype = FRAME if kind == "frames" else ITEM
        rows = sum(getattr(game, kind) for game in self.contents[shard].games)
        path = self._path(shard, kind)
        try:
            array = npz.array_in(path, mapped=rows > 0)
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: cannot be read ({error}); parse the replays again.") from None
        if array.dtype != dtype or array.shape != (rows,):
            raise DataError(f"{path}: holds {array.shape} of another kind, expected {rows} rows; parse again.")
        return array


def read_contents(path: Path, shards: list[str]) -> Iterator[Contents]:
    """What the files of some shards say. Raises `DataError`."""
    for shard in shards:
        yield _contents(path / f"{shard}.json")


def _finished(path: Path) -> list[str]:
    try:
        notes = read_json(path / NOTES, dict[str, Any])
        finished = sorted(msgspec.convert(notes["finished"], list[str]))
    except FileNotFoundError:
        raise DataError(
            f"{path}: is no store of games ({NOTES} is missing); make one with `cockpit data parse REPLAYS {path}`."
        ) from None
    except (OSError, msgspec.MsgspecError, KeyError) as error:
        raise DataError(f"{path / NOTES}: cannot be read ({error}); parse the replays again.") from None
    if not notes.get("complete"):
        raise DataError(f"{path}: is not finished; start the same `cockpit data parse` or `data make` again.")
    if notes.get("format") != FORMAT:
        raise DataError(f"{path}: was made by another version (format {notes.get('format')}, expected {FORMAT}).")
    return finished


def _contents(path: Path) -> Contents:
    try:
        return read_json(path, Contents)
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(f"{path}: cannot be read ({error}); parse the replays again.") from None
