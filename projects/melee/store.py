"""The store of games: memory-mapped shards of frames and items, each with a small file that says what is in it.

00000.frames.npy  rows of layout.FRAME, game after game       00000.items.npy  rows of layout.ITEM
00000.json        its games, and the replays before them that were left out
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.basics.errors import DataError
from engines.basics.files import replace_bytes
from projects.melee.game import Game, Reason
from projects.melee.layout import FRAME, ITEM
from projects.melee.sources import NOTES

FORMAT = 1
SHARD_ROWS = 500_000
"""A shard is closed after this many frames: 66 MB of them."""
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
        frames = game.frames.copy()
        frames["first_item"] += self._items
        self._games.append(Game(frames, game.items, game.stage, game.external_stage, game.missing, game.version))
        first, second = frames[0]["players"]["character"].tolist()
        self.contents.games.append(
            StoredGame(
                name=name, source=source, first_row=self.rows, frames=len(frames), first_item=self._items,
                items=len(game.items), stage=game.stage, external_stage=game.external_stage,
                characters=(first, second), version=game.version, digest=game.digest,
                missing=game.missing,
            )
        )  # fmt: skip
        self.rows += len(frames)
        self._items += len(game.items)

    def leave(self, source: str, reason: Reason, text: str) -> None:
        self.contents.left.append(LeftOut(source, reason, text))

    @property
    def is_empty(self) -> bool:
        return not (self.contents.games or self.contents.left)

    def write(self, folder: Path, shard: str) -> None:
        """Write the three files. Raises OSError."""
        frames = np.concatenate([game.frames for game in self._games] or [np.zeros(0, FRAME)])
        items = np.concatenate([game.items for game in self._games] or [np.zeros(0, ITEM)])
        replace_bytes(folder / f"{shard}.frames.npy", _npy(frames))
        replace_bytes(folder / f"{shard}.items.npy", _npy(items))
        content = msgspec.json.format(msgspec.json.encode(self.contents))
        replace_bytes(folder / f"{shard}.json", content + b"\n")


def _npy(array: NDArray[Any]) -> bytes:
    """The array as a file of numpy's."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


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
        self._frames: dict[int, NDArray[Any]] = {}
        self._items: dict[int, NDArray[Any]] = {}
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
        if shard not in self._frames:
            self._frames[shard] = self._open(shard, "frames", FRAME, self.rows[shard])
        return self._frames[shard]

    def items(self, shard: int) -> NDArray[Any]:
        """The items of a shard, memory-mapped: (items,) of `ITEM`."""
        if shard not in self._items:
            count = sum(game.items for game in self.contents[shard].games)
            self._items[shard] = self._open(shard, "items", ITEM, count)
        return self._items[shard]

    def game(self, place: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Frames and items of one game; `first_item` counts from the shard's first item."""
        placed = self.games[place]
        first = placed.game.first_row
        return self.frames(placed.shard)[first : first + placed.game.frames], self.items(placed.shard)

    def _open(self, shard: int, kind: str, dtype: np.dtype[Any], rows: int) -> NDArray[Any]:
        path = self.shards[shard].with_name(f"{self.shards[shard].name}.{kind}.npy")
        try:
            array: NDArray[Any] = np.load(path, mmap_mode="r" if rows else None, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: cannot be read ({error}); parse the replays again.") from None
        if array.dtype != dtype or array.shape != (rows,):
            raise DataError(f"{path}: holds {array.shape} of another kind, expected {rows} rows; parse again.")
        return array


def is_store(path: Path) -> bool:
    """Whether a store lies at `path`."""
    return (path / NOTES).is_file()


def read_contents(path: Path, shards: list[str]) -> Iterator[Contents]:
    """What the files of some shards say. Raises `DataError`."""
    for shard in shards:
        yield _contents(path / f"{shard}.json")


def _finished(path: Path) -> list[str]:
    try:
        notes = msgspec.json.decode((path / NOTES).read_bytes(), type=dict[str, Any])
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
        return msgspec.json.decode(path.read_bytes(), type=Contents)
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(f"{path}: cannot be read ({error}); parse the replays again.") from None
