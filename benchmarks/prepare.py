"""Preparing a million training windows: features, masks, statistics and class weights, from recordings in memory.

Against the usual loop over a dataset's items, which gathers the same statistics window by window. That loop is measured
on a few thousand windows, since all of them would take it most of an hour.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import torch

from benchmarks.controls_data import HISTORY_DROPOUT, random_recordings, raw_bytes
from benchmarks.item_datasets import FLAGS, ItemDataset
from benchmarks.measure import Measurement
from projects.controls.batches import WindowSource
from projects.controls.layout import CONTROL_SIZE, FEATURE_SIZE, WINDOW
from projects.controls.losses import pos_weights
from projects.controls.recordings import Recording

WINDOWS = 1_000_000
SESSIONS = 100
ITEMS = 3000
SECONDS_WANTED = 10.0


def _memory(what: str) -> float:
    """Bytes that /proc says of this process: VmRSS is held now, VmHWM the most ever."""
    found = re.search(rf"{what}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return float(found[1]) * 1024 if found else float("nan")


def _item_rate(recordings: list[Recording]) -> float:
    """Windows a second of the loop over items."""
    dataset = ItemDataset(recordings)
    total, squares = torch.zeros(2, FEATURE_SIZE, dtype=torch.float64)
    pressed, flagged = torch.zeros(CONTROL_SIZE), torch.zeros(len(FLAGS))
    began = time.perf_counter()
    for item in range(ITEMS):
        features, _, target, flags = dataset[item]
        newest = features[-1].double()
        total += newest
        squares += newest.square()
        pressed += target > 0.5
        flagged += torch.tensor([flags[name] for name in FLAGS])
    return ITEMS / (time.perf_counter() - began)


def measure() -> list[Measurement]:
    """Time, memory that stays and memory at the peak, beside what they may be."""
    recordings = random_recordings(SESSIONS, WINDOWS // SESSIONS + WINDOW - 1, seed=0)
    raw = raw_bytes(recordings)
    before = _memory("VmRSS")
    cpu = time.process_time()
    began = time.perf_counter()
    source = WindowSource(recordings, torch.device("cpu"), HISTORY_DROPOUT)
    made = time.perf_counter()
    source.feature_statistics()
    known = time.perf_counter()
    pos_weights(source)
    ended = time.perf_counter()
    cpu = time.process_time() - cpu
    peak = _memory("VmHWM") - before
    seconds, windows = ended - began, len(source)
    slow = _item_rate(recordings[:1])
    steps = f"arrays {made - began:.1f} s, statistics {known - made:.1f} s, class weights {ended - known:.1f} s"
    return [
        Measurement(
            name="prepare", ours=windows / seconds, theirs=slow, unit="windows/s", ratio=windows / seconds / slow,
            reach="—", note=f"item by item: {ITEMS:,} windows measured",
        ),
        Measurement(
            name="prepare_seconds", ours=seconds, theirs=SECONDS_WANTED, unit="s", ratio=seconds / SECONDS_WANTED,
            reach="≤ 1", note=f"{windows:,} windows: {steps}; {cpu:.1f} s of a core",
        ),
        Measurement(
            name="prepare_resident", ours=source.nbytes / 1e6, theirs=raw / 1e6, unit="MB", ratio=source.nbytes / raw,
            reach="≤ 2",
        ),
        Measurement(
            name="prepare_peak", ours=peak / 1e6, theirs=raw / 1e6, unit="MB", ratio=peak / raw, reach="—",
            note="most memory taken beyond the recordings while preparing",
        ),
    ]  # fmt: skip
