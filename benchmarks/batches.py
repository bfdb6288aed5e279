"""Training windows a second: whole batches by index, against one item at a time, and against a plain copy.

All three make the same bytes: 64 windows of 30 × 671 float32 with history dropout and masks. The copy into a
preallocated batch does nothing else and is the limit. Rounds of all sides alternate, medians are compared.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from benchmarks.controls_data import HISTORY_DROPOUT, random_recordings
from benchmarks.measure import Measurement
from projects.controls.batches import WindowSource
from projects.controls.features import frame_features, target_frames
from projects.controls.layout import CONTROL_SIZE, FEATURE_SIZE, HISTORY, HISTORY_FEATURES, WINDOW
from projects.controls.masks import frame_masks
from projects.controls.recordings import Recording

BATCH = 64
ROUNDS = 15
SECONDS = 0.4


class ItemDataset(Dataset[tuple[torch.Tensor, torch.Tensor, torch.Tensor, dict[str, bool]]]):
    """One window an item, from rows whose features were computed before: the usual way."""

    def __init__(self, recordings: list[Recording]) -> None:
        self._rows = [torch.from_numpy(frame_features(recording)) for recording in recordings]
        self._controls = [torch.from_numpy(recording.controls) for recording in recordings]
        self._masks = [frame_masks(recording.controls, recording.state) for recording in recordings]
        self._index = [(s, last) for s, recording in enumerate(recordings) for last in target_frames(len(recording))]

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, item: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, dict[str, bool]]:
        session, last = self._index[item]
        features = self._rows[session][last - WINDOW + 1 : last + 1].clone()
        keep = (torch.rand(WINDOW + HISTORY - 1, 1) >= HISTORY_DROPOUT).float()
        history = features[:, HISTORY_FEATURES].view(WINDOW, HISTORY, CONTROL_SIZE)
        history *= keep.unfold(0, HISTORY, 1).transpose(1, 2)
        masks = self._masks[session]
        names = ("gameplay", "screen_open", "hotbar_changed", "look_active")
        flags = {name: bool(getattr(masks, name)[last]) for name in names}
        return features, torch.ones(WINDOW, dtype=torch.bool), self._controls[session][last], flags


def _rate(make_batch: Callable[[], object]) -> float:
    """Windows a second over a fixed time."""
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        make_batch()
        count += BATCH
    return count / (time.perf_counter() - began)


def _forever(loader: DataLoader[object]) -> Iterator[object]:
    return itertools.chain.from_iterable(itertools.repeat(loader))


def measure() -> list[Measurement]:
    """Ours against the better of 0 and 2 workers, against the copy, and the memory of our arrays."""
    torch.manual_seed(0)
    recordings = random_recordings(sessions=8, frames=2000, seed=0)
    source = WindowSource(recordings, torch.device("cpu"), HISTORY_DROPOUT)
    dataset = ItemDataset(recordings)
    loaders = {
        workers: _forever(DataLoader(dataset, BATCH, shuffle=True, num_workers=workers, drop_last=True))
        for workers in (0, 2)
    }
    chance = np.random.Generator(np.random.Philox(0))
    order = torch.from_numpy(chance.permutation(len(source)))
    starts = itertools.cycle(range(0, len(order) - BATCH, BATCH))
    packed, preallocated = torch.rand(BATCH, WINDOW, FEATURE_SIZE), torch.empty(BATCH, WINDOW, FEATURE_SIZE)

    def ours() -> object:
        start = next(starts)
        return source.batch(order[start : start + BATCH], chance)

    sides: dict[str, Callable[[], object]] = {
        "ours": ours,
        "items": lambda: next(loaders[0]),
        "items, 2 workers": lambda: next(loaders[2]),
        "copy": lambda: preallocated.copy_(packed),
    }
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            rates[name].append(_rate(side))
    median = {name: statistics.median(found) for name, found in rates.items()}
    items = max(median["items"], median["items, 2 workers"])
    note = f"0 workers {median['items']:,.0f}, 2 workers {median['items, 2 workers']:,.0f}; augmentation off"
    raw = sum(r.frames.nbytes + r.controls.nbytes + r.state.nbytes + r.timestamps.nbytes for r in recordings)
    resident = source.nbytes
    return [
        Measurement(
            name="batches", ours=median["ours"], theirs=items, unit="windows/s", ratio=median["ours"] / items,
            reach="≥ 10", note=note,
        ),
        Measurement(
            name="batches_of_copy", ours=median["ours"], theirs=median["copy"], unit="windows/s",
            ratio=median["ours"] / median["copy"], reach="≥ 0.25",
        ),
        Measurement(
            name="batches_resident", ours=resident / 1e6, theirs=raw / 1e6, unit="MB", ratio=resident / raw,
            reach="≤ 2",
        ),
    ]  # fmt: skip
