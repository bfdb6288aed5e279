"""Training windows a second: whole batches by index, against one item at a time, and against a plain copy.

All three make the same bytes: 64 windows of 30 × 671 float32 with history dropout and masks. The copy into a
preallocated batch does nothing else and is the limit. Rounds of all sides alternate, medians are compared. Every
process has one thread: two that share so little work wait for each other, and a worker of a DataLoader has one too.
"""

from __future__ import annotations

import functools
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from torch.utils.data import DataLoader

from benchmarks.controls_data import HISTORY_DROPOUT, random_recordings, raw_bytes
from benchmarks.item_datasets import AugmentedDataset, ItemDataset, RowDataset
from benchmarks.measure import Measurement
from projects.controls.batches import WindowSource
from projects.controls.config import Augmentation
from projects.controls.layout import FEATURE_SIZE, WINDOW

BATCH = 64
ROUNDS = 15
SECONDS = 0.4
SETTLE = 0.2
"""Seconds before each measurement: workers of the side before still fill their queues for a while."""


def _rate(make_batch: Callable[[], object]) -> float:
    """Windows a second over a fixed time."""
    time.sleep(SETTLE)
    make_batch()
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        make_batch()
        count += BATCH
    return count / (time.perf_counter() - began)


def _median_rates(sides: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Windows a second of each side, in rounds that alternate."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            rates[name].append(_rate(side))
    return {name: statistics.median(found) for name, found in rates.items()}


def _forever(loader: DataLoader[object]) -> Iterator[object]:
    return itertools.chain.from_iterable(itertools.repeat(loader))


def measure() -> list[Measurement]:
    """Ours against the better of 0 and 2 workers, against the copy, and the memory of our arrays."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    recordings = random_recordings(sessions=8, frames=2000, seed=0)
    augmentation = Augmentation()
    chance = np.random.Generator(np.random.Philox(0))
    source = WindowSource(recordings, torch.device("cpu"), HISTORY_DROPOUT)
    augmented = WindowSource(recordings, torch.device("cpu"), HISTORY_DROPOUT, augmentation)
    order = torch.from_numpy(chance.permutation(len(source)))
    starts = itertools.cycle(range(0, len(order) - BATCH, BATCH))
    packed, preallocated = torch.rand(BATCH, WINDOW, FEATURE_SIZE), torch.empty(BATCH, WINDOW, FEATURE_SIZE)

    def batch_of(source: WindowSource) -> object:
        start = next(starts)
        return source.batch(order[start : start + BATCH], chance)

    sides: dict[str, Callable[[], object]] = {
        "ours": functools.partial(batch_of, source),
        "ours augmented": functools.partial(batch_of, augmented),
        "copy": lambda: preallocated.copy_(packed),
    }
    datasets = {
        "items": ItemDataset(recordings),
        "rows": RowDataset(recordings),
        "items augmented": AugmentedDataset(recordings, augmentation),
    }
    for (name, dataset), workers in itertools.product(datasets.items(), (0, 2)):
        loader = DataLoader(dataset, BATCH, shuffle=True, num_workers=workers, drop_last=True)
        sides[f"{name} {workers}"] = functools.partial(next, _forever(loader))
    median = _median_rates(sides)

    def against(name: str, theirs: float, reach: str, note: str = "", ours: str = "ours") -> Measurement:
        return Measurement(
            name=name, ours=median[ours], theirs=theirs, unit="windows/s", ratio=median[ours] / theirs, reach=reach,
            note=note,
        )  # fmt: skip

    def best(name: str) -> tuple[float, str]:
        none, two = median[f"{name} 0"], median[f"{name} 2"]
        return max(none, two), f"0 workers {none:,.0f}, 2 workers {two:,.0f}"

    raw = raw_bytes(recordings)
    items, items_note = best("items")
    rows, rows_note = best("rows")
    slow, slow_note = best("items augmented")
    return [
        against("batches", items, "≥ 10", f"{items_note}; augmentation off"),
        # no bar: 10 times this is more than half of a bare copy; the bar is for the dataset above, of which the
        # copy is several dozen times
        against("batches_to_rows", rows, "—", f"features made beforehand, at twice the memory; {rows_note}"),
        against("batches_augmented", slow, "—", f"both sides crop, warp and blur; {slow_note}", ours="ours augmented"),
        against("batches_to_copy", median["copy"], "≥ 0.25", "theirs: a plain copy of as many bytes, the limit"),
        Measurement(
            name="batches_resident", ours=source.nbytes / 1e6, theirs=raw / 1e6, unit="MB", ratio=source.nbytes / raw,
            reach="≤ 2", note="theirs: the recordings' own arrays",
        ),
    ]  # fmt: skip
