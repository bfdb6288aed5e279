"""Replays to stored arrays, in frames per CPU second: ours against py-slippi, and against peppi's bare reading.

The same unpacked replays lie in memory for all sides. Ours reads every copy of a frame, keeps the last, and writes a
shard; the others only read. Rounds of ours and of the bare reading alternate; the best of each is compared.
"""

from __future__ import annotations

import lzma
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import peppi_py
import slippi

from benchmarks.measure import Measurement
from engines.basics.errors import DataError
from projects.melee.replay import read_replay
from projects.melee.sources import MEMORY
from projects.melee.store import ShardWriter

REPLAYS = Path(__file__).parents[2] / "shared/data/melee/replays"
NAMES = ("game_01", "game_04", "game_07", "game_10", "game_12", "game_17")
"""Short and long, with many repeated frames (07) and many items (12)."""
ROUNDS = 5


def measure() -> list[Measurement]:
    """Raises `DataError` where the real replays are not here."""
    if not REPLAYS.is_dir():
        raise DataError(f"{REPLAYS}: does not exist; this benchmark needs the real replays there.")
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        paths = [_unpacked(name, Path(folder)) for name in NAMES]
        frames = sum(len(read_replay(path).frames) for path in paths)
        written = Path(folder) / "store"
        written.mkdir()
        ours, bare = [], []
        for _ in range(ROUNDS):
            ours.append(frames / _seconds(lambda: _parse(paths, written)))
            bare.append(frames / _seconds(lambda: [peppi_py.read_slippi(str(path)) for path in paths]))
        usual = frames / _seconds(lambda: [slippi.Game(str(path)) for path in paths])
    note = f"{frames:,} frames of {len(paths)} games, each once; one thread"
    return [
        _against("parse", max(ours), usual, "≥ 20", f"py-slippi; {note}"),
        _against("parse_to_bare", max(ours), max(bare), "≥ 0.5", "peppi, all copies, into its own arrays"),
    ]


def _unpacked(name: str, folder: Path) -> Path:
    path = folder / f"{name}.slp"
    path.write_bytes(lzma.decompress((REPLAYS / f"{name}.slp.xz").read_bytes()))
    return path


def _parse(paths: Sequence[Path], folder: Path) -> None:
    writer = ShardWriter()
    for path in paths:
        writer.add(path.stem, path.name, read_replay(path))
    writer.write(folder, "00000")


def _seconds(work: Callable[[], object]) -> float:
    """CPU seconds of all threads."""
    began = time.process_time()
    work()
    return time.process_time() - began


def _against(name: str, ours: float, theirs: float, reach: str, note: str) -> Measurement:
    return Measurement(
        name=name, ours=ours, theirs=theirs, unit="frames/CPU s", ratio=ours / theirs, reach=reach, note=note
    )
