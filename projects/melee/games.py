"""Which games of a store are learned from, which are held out, and their windows as whole batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.basics.errors import DataError
from engines.training.project import Batch, Context
from engines.training.samples import Ranges
from engines.training.windows import Windows, send
from projects.melee.encoding import NEEDED, encode
from projects.melee.frames import Frames
from projects.melee.layout import FRAME, ITEM, MOST_ITEMS
from projects.melee.store import Placed, Store

Rows = NDArray[Any]


class GameWindows:
    """Every window of `length` frames of some games, gathered from memory-mapped shards.

    A training source of `Frames`, each a tensor of the batch by its name; rows are read in the order of the disk.
    """

    read_ahead = True
    """For `Split`: the rows of a batch come from disk."""

    def __init__(
        self, store: Store, games: Sequence[Placed], length: int, projectiles: int, device: torch.device
    ) -> None:
        self.store, self.games, self.length = store, list(games), length
        self._projectiles, self._device = projectiles, device
        self._windows = Windows([placed.game.frames for placed in games], length)
        self._shards = np.array([placed.shard for placed in games], np.int64)
        self._firsts = np.array([placed.game.first_row for placed in games], np.int64)
        lengths = np.array([placed.game.frames for placed in games], np.int64)
        self._before = np.cumsum(lengths) - lengths
        self._stages = np.array([placed.game.stage for placed in games], np.int64)
        if not len(self):
            raise DataError(
                f"{store.path}: no game is as long as a window of {length} frames; choose a smaller data.K."
            )

    def __len__(self) -> int:
        return len(self._windows)

    def batch(self, indices: Tensor, rng: np.random.Generator | None, ctx: Context | None = None) -> Batch:
        """The windows `indices: (batch,)`."""
        frames = self.gather(indices.numpy(), self.length)
        return {name: send(tensor, self._device) for name, tensor in vars(frames).items()}

    def gather(self, windows: NDArray[np.int64], length: int) -> Frames:
        """`length` frames from the first one of each window on: (windows, length). Must lie inside of their games."""
        games = self._windows.sequences(windows)
        places = self._windows.first_rows(windows) - self._before[games]
        return self.frames(games, places, length)

    def frames(self, games: NDArray[np.int64], places: NDArray[np.int64], length: int) -> Frames:
        """`length` frames of each of `games: (batch,)`, by place in `self.games`, from `places: (batch,)` on."""
        rows, items = self._read(self._shards[games], self._firsts[games] + places, length)
        return encode(rows, self._stages[games], items, self._projectiles)

    def will_read(self, blocks: Ranges) -> None:
        """Have the rows and items of some ranges of windows read into the page cache meanwhile."""
        for first, stop in zip(blocks.starts, blocks.stops, strict=True):
            first_game, last_game = self._windows.sequences(np.array([first, stop - 1])).tolist()
            for game in range(first_game, last_game + 1):
                placed, windows = self.games[game], self._windows.of(game)
                begins = placed.game.first_row + max(0, first - windows.start)
                ends = placed.game.first_row + min(stop, windows.stop) - windows.start + self.length - 1
                self.store.will_read(placed.shard, "frames", begins, ends)
                if self._projectiles:
                    item = placed.game.first_item
                    self.store.will_read(placed.shard, "items", item, item + placed.game.items)

    def _read(self, shards: NDArray[np.int64], first: NDArray[np.int64], length: int) -> tuple[Rows, Rows]:
        """Rows (batch, length) and their items (batch, length, 15), the latter only where they are looked at."""
        order = np.lexsort((first, shards))
        rows = np.empty((len(first), length), FRAME)
        items = np.zeros((len(first), length, MOST_ITEMS if self._projectiles else 0), ITEM)
        for some in np.split(order, np.flatnonzero(np.diff(shards[order])) + 1):
            shard = int(shards[some[0]])
            found = _runs(self.store.frames(shard), length)[first[some]]
            _whole(rows)[some] = found
            if self._projectiles:
                table = self.store.items(shard)
                _whole(items)[some] = _whole(items_of(found.view(FRAME).reshape(-1, length), table))
        return rows, items


def _runs(frames: Rows, length: int) -> NDArray[np.void]:
    """Every run of `length` rows, each as one value that is copied at once, a view: (rows - length + 1,)."""
    size = frames.dtype.itemsize
    return np.ndarray((len(frames) - length + 1,), f"V{length * size}", frames, strides=(size,))


def _whole(array: Rows) -> NDArray[np.void]:
    """A view of what lies below the first dimension as one value: numpy would copy field by field."""
    return array.reshape(len(array), -1).view(f"V{array[0].nbytes}")[:, 0]


def items_of(rows: Rows, table: Rows) -> Rows:
    """The items of each of `rows: (…)`: (…, 15) of `ITEM`; zeros after as many as a row has."""
    found = np.zeros((*rows.shape, MOST_ITEMS), ITEM)
    some = np.nonzero(rows["items"])  # few frames have any
    counts = rows["items"][some].astype(np.int64)
    begins = np.repeat(rows["first_item"][some].astype(np.int64), counts)
    places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    found[(*(np.repeat(axis, counts) for axis in some), places)] = table[begins + places]
    return found


def complete_games(store: Store) -> tuple[list[Placed], Mapping[str, int]]:
    """The games with every field that a model reads, and of the others how many lack which fields.

    Raises `DataError` where there is none.
    """
    whole, lacking = [], dict[str, int]()
    for placed in store.games:
        absent = [name for name in NEEDED if name in placed.game.missing]
        if absent:
            names = ", ".join(absent)
            lacking[names] = lacking.get(names, 0) + 1
        else:
            whole.append(placed)
    if not whole:
        raise DataError(
            f"{store.path}: no game has every field that a model reads (speeds come with "
            "replay version 3.5, hitlag with 3.8); parse newer replays."
        )
    return whole, lacking
