"""Windows of stored games: whole batches by index against one item at a time, and what a step waits for cold shards.

Both sides make the same tensors (512 windows of 11 frames with two projectiles) from the same memory-mapped shards of
demo games, in windows per CPU second. For the waiting, the shards are dropped from the page cache and a network takes
steps on batches in a grouped order, the next batch gathered by a thread meanwhile, as the engine does it.
"""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from benchmarks.measure import Measurement
from engines.tasks.folder import output_folder
from engines.training.grouped_order import GroupedOrder
from engines.training.project import Batch
from projects.melee.demo.match import play
from projects.melee.encoding import encode
from projects.melee.games import GameWindows, complete_games, items_of
from projects.melee.sources import NOTES
from projects.melee.store import FORMAT, ShardWriter, Store, is_ours

GAMES, COPIES, FRAMES = 6, 32, 7200
BATCH, LENGTH, PROJECTILES = 512, 11, 2
ROUNDS, SECONDS = 7, 0.5
STEPS, WIDTH = 1200, 768
"""Of the waiting: steps until the second group of blocks is read, and the width of the network."""


class ItemDataset(Dataset[Batch]):
    """One window an item: its rows looked up, encoded and stacked by the loader, the usual way."""

    def __init__(self, store: Store) -> None:
        self._games = [store.game(place) for place in range(len(store.games))]
        self._stages = np.array([placed.game.stage for placed in store.games], np.int64)
        self._index = [
            (game, first)
            for game, (frames, _) in enumerate(self._games)
            for first in range(len(frames) - LENGTH + 1)
        ]  # fmt: skip

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, item: int) -> Batch:
        game, first = self._index[item]
        frames, items = self._games[game]
        rows = np.asarray(frames[first : first + LENGTH])[None]
        found = encode(rows, self._stages[game : game + 1], items_of(rows, items), PROJECTILES)
        return {name: part[0] for name, part in vars(found).items()}


def measure() -> list[Measurement]:
    """Windows a second, and the share of a step's time in which it waits."""
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        _write(path)
        waits = _waits(path)  # first: what a process has mapped is not dropped from the cache
        return [_batches(Store(path)), waits]


def _write(path: Path) -> None:
    """Some games, each often, so that the store is larger than what a few batches read."""
    games = [play(0, number, FRAMES) for number in range(GAMES)]
    with output_folder(path, NOTES, {"made": "demo games", "format": FORMAT}, is_ours) as folder:
        for copy in range(COPIES):
            writer, shard = ShardWriter(), f"{copy:05d}"
            for number, game in enumerate(games):
                writer.add(f"{copy}_{number}", f"{copy}_{number}", replace(game, frames=game.frames.copy()))
            writer.write(path, shard)
            folder.finish(shard)
        folder.complete()


def _windows(store: Store) -> GameWindows:
    return GameWindows(store, complete_games(store)[0], LENGTH, PROJECTILES, torch.device("cpu"))


def _batches(store: Store) -> Measurement:
    windows, dataset = _windows(store), ItemDataset(store)
    order = GroupedOrder(range(len(windows)), BATCH, seed=0)
    steps = itertools.count()
    items = itertools.chain.from_iterable(itertools.repeat(DataLoader(dataset, BATCH, shuffle=True, drop_last=True)))

    def whole() -> Batch:
        return windows.batch(order.indices(0, next(steps) % order.steps_per_pass), None)

    rates = [(_rate(whole), _rate(items.__next__)) for _ in range(ROUNDS)]
    ours, theirs = (statistics.median(side) for side in zip(*rates, strict=True))
    return Measurement(
        name="shards", ours=ours, theirs=theirs, unit="windows/CPU s", ratio=ours / theirs, reach="≥ 10",
        note=f"a DataLoader in this process, so that its CPU time is seen; {len(windows):,} windows",
    )  # fmt: skip


def _rate(make_batch: Callable[[], object]) -> float:
    """Windows a CPU second."""
    make_batch()
    count, began = 0, time.process_time()
    while time.process_time() - began < SECONDS:
        make_batch()
        count += BATCH
    return count / (time.process_time() - began)


def _waits(path: Path) -> Measurement:
    """Steps on shards that are not in the page cache."""
    _drop_from_cache(path)
    windows = _windows(Store(path))
    order = GroupedOrder(range(len(windows)), BATCH, seed=1, soon=windows.will_read)
    model = nn.Sequential(
        nn.Flatten(), nn.LazyLinear(WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH),
    )  # fmt: skip

    def gather(step: int) -> Batch:
        return windows.batch(order.indices(0, step), None)

    read, waits = _bytes_read(), []
    with ThreadPoolExecutor(1) as thread:
        began = time.perf_counter()
        ahead = thread.submit(gather, 0)
        for step in range(1, STEPS + 1):
            asked = time.perf_counter()
            batch = ahead.result()
            waits.append(time.perf_counter() - asked)
            ahead = thread.submit(gather, step)
            _step(model, batch)
        seconds, waited = time.perf_counter() - began, sum(waits)
    read = _bytes_read() - read
    return Measurement(
        name="shards_wait", ours=waited / STEPS * 1e3, theirs=seconds / STEPS * 1e3, unit="ms/step",
        ratio=waited / seconds, reach="≤ 0.05",
        note=(
            f"theirs: the whole step, of an MLP {WIDTH} wide; of {waited * 1e3:.0f} ms in {STEPS:,} steps "
            f"{waits[0] * 1e3:.0f} are for the first batch, before which there is no step; "
            f"{read / 1e6:.0f} MB came from the disk"
        ),
    )  # fmt: skip


def _step(model: nn.Module, batch: Batch) -> None:
    rows: Tensor = torch.cat([batch["state"], batch["control"]], dim=-1)
    model(rows).square().mean().backward()


def _drop_from_cache(path: Path) -> None:
    for file in path.glob("*.npy"):
        handle = os.open(file, os.O_RDONLY)
        try:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def _bytes_read() -> int:
    """From the disk, by this process."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))
