"""Training windows a second: whole batches by index, against one item at a time, and against a plain copy.

All three make the same bytes: 64 windows of 30 × 671 float32 with history dropout and masks. The copy into a
preallocated batch does nothing else and is the limit. Rounds of all sides alternate, medians are compared.
"""

from __future__ import annotations

import functools
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
from projects.controls.features import frame_features, lagged_state
from projects.controls.layout import CONTROL_SIZE, COORDINATES, FEATURE_SIZE, HISTORY, HISTORY_FEATURES, WINDOW
from projects.controls.masks import frame_masks
from projects.controls.recordings import Recording

BATCH = 64
ROUNDS = 15
SECONDS = 0.4


Item = tuple[torch.Tensor, torch.Tensor, torch.Tensor, dict[str, bool]]
FLAGS = ("gameplay", "screen_open", "hotbar_changed", "look_active")


class ItemDataset(Dataset[Item]):
    """One window an item, its features put together from the recording's arrays: the usual way."""

    def __init__(self, recordings: list[Recording]) -> None:
        self._frames = [torch.from_numpy(recording.frames) for recording in recordings]
        self._state = [torch.from_numpy(lagged_state(recording.state)) for recording in recordings]
        self._controls = [torch.from_numpy(recording.controls) for recording in recordings]
        self._masks = [frame_masks(recording.controls, recording.state) for recording in recordings]
        # every window that has a frame and five controls before it
        self._index = [
            (session, last)
            for session, recording in enumerate(recordings)
            for last in range(WINDOW + HISTORY - 1, len(recording))
        ]

    def __len__(self) -> int:
        return len(self._index)

    def _features(self, session: int, last: int) -> torch.Tensor:
        first, end = last - WINDOW + 1, last + 1
        frames = self._frames[session][first - 1 : end]
        velocity = frames[1:, :COORDINATES] - frames[:-1, :COORDINATES]
        past = self._controls[session][first - HISTORY : last].unfold(0, HISTORY, 1).transpose(1, 2).flatten(1)
        return torch.cat([frames[1:], velocity, self._state[session][first:end], past], dim=1)

    def __getitem__(self, item: int) -> Item:
        session, last = self._index[item]
        features = self._features(session, last)
        keep = (torch.rand(WINDOW + HISTORY - 1, 1) >= HISTORY_DROPOUT).float()
        history = features[:, HISTORY_FEATURES].view(WINDOW, HISTORY, CONTROL_SIZE)
        history *= keep.unfold(0, HISTORY, 1).transpose(1, 2)
        masks = self._masks[session]
        flags = {name: bool(getattr(masks, name)[last]) for name in FLAGS}
        return features, torch.ones(WINDOW, dtype=torch.bool), self._controls[session][last], flags


class RowDataset(ItemDataset):
    """The same items cut from rows of 671 features made beforehand: faster, for twice the memory of the recordings."""

    def __init__(self, recordings: list[Recording]) -> None:
        super().__init__(recordings)
        self._rows = [torch.from_numpy(frame_features(recording)) for recording in recordings]

    def _features(self, session: int, last: int) -> torch.Tensor:
        return self._rows[session][last - WINDOW + 1 : last + 1].clone()


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
    chance = np.random.Generator(np.random.Philox(0))
    order = torch.from_numpy(chance.permutation(len(source)))
    starts = itertools.cycle(range(0, len(order) - BATCH, BATCH))
    packed, preallocated = torch.rand(BATCH, WINDOW, FEATURE_SIZE), torch.empty(BATCH, WINDOW, FEATURE_SIZE)

    def ours() -> object:
        start = next(starts)
        return source.batch(order[start : start + BATCH], chance)

    sides: dict[str, Callable[[], object]] = {"ours": ours, "copy": lambda: preallocated.copy_(packed)}
    datasets = {"items": ItemDataset(recordings), "rows": RowDataset(recordings)}
    for (name, dataset), workers in itertools.product(datasets.items(), (0, 2)):
        loader = DataLoader(dataset, BATCH, shuffle=True, num_workers=workers, drop_last=True)
        sides[f"{name} {workers}"] = functools.partial(next, _forever(loader))
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            rates[name].append(_rate(side))
    median = {name: statistics.median(found) for name, found in rates.items()}

    def against(name: str, theirs: float, reach: str, note: str = "") -> Measurement:
        ratio = median["ours"] / theirs
        return Measurement(
            name=name, ours=median["ours"], theirs=theirs, unit="windows/s", ratio=ratio, reach=reach, note=note
        )

    def best(name: str) -> tuple[float, str]:
        none, two = median[f"{name} 0"], median[f"{name} 2"]
        return max(none, two), f"0 workers {none:,.0f}, 2 workers {two:,.0f}; augmentation off"

    raw = sum(r.frames.nbytes + r.controls.nbytes + r.state.nbytes + r.timestamps.nbytes for r in recordings)
    items, items_note = best("items")
    rows, rows_note = best("rows")
    return [
        against("batches", items, "≥ 10", items_note),
        against("batches_to_rows", rows, "≥ 10", f"features made beforehand, at twice the memory; {rows_note}"),
        against("batches_to_copy", median["copy"], "≥ 0.25"),
        Measurement(
            name="batches_resident", ours=source.nbytes / 1e6, theirs=raw / 1e6, unit="MB", ratio=source.nbytes / raw,
            reach="≤ 2",
        ),
    ]  # fmt: skip
