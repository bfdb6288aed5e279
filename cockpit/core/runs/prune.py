"""What goes of runs that have ended: checkpoints by a rule, shards that none of them names; and what that frees."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engines.basics.errors import DataError, UserError
from engines.basics.lock import RunLock, lock_holder
from engines.contract.rundir import RunDirectory
from engines.runs.keeping import KeepRule, Scored
from engines.runs.saved import SHARDS, read_saved, shard_files, shards_of
from engines.runs.state import RunReader

_KEPT = re.compile(r"epoch_(\d{3,9})\.pt")
OVER = ("finished", "early-stopped")
"""States of runs that have nothing left to do."""


@dataclass(frozen=True)
class Surplus:
    """A checkpoint that goes with its shards; without an epoch, a folder of shards that no checkpoint names."""

    run: RunDirectory
    file: Path
    epoch: int | None
    score: float | None

    def files(self) -> list[Path]:
        """All that goes with it."""
        if self.epoch is None:
            return [file for file in self.file.rglob("*") if file.is_symlink() or not file.is_dir()]
        return [self.file, *shard_files(self.file)]


def surplus_of(run: RunDirectory, rule: KeepRule, *, last: bool) -> list[Surplus]:
    """What `rule` takes from `run`, the oldest first; nothing from a live one. best.pt, the best of stages and what a
    fork began with always stay; last.pt goes only where asked for, of a run that is over and has its best."""
    if run.info.kind != "training" or lock_holder(run.lock) is not None:
        return []
    reader = RunReader(run)
    state = reader.status().state
    epochs = {row.epoch: Scored(row.epoch, row.stage, row.score) for row in reader.history.epochs.values()}
    kept = rule.kept(epochs.values())
    found = []
    for file in sorted(run.checkpoints.glob("epoch_*.pt")):
        match = _KEPT.fullmatch(file.name)
        if match and int(match[1]) in epochs and int(match[1]) not in kept and file.is_file():
            found.append(Surplus(run, file, int(match[1]), epochs[int(match[1])].score))
    if last and state in OVER and run.last.is_file() and run.best.is_file():
        newest = max(epochs.values(), key=lambda one: one.epoch, default=Scored(0, "", None))
        found.append(Surplus(run, run.last, newest.epoch, newest.score))
    if state == "lost":  # on a volume without locks it may be live on another machine, and name them in a moment
        return found
    return found + [Surplus(run, folder, None, None) for folder in unnamed_shards(run)]


def unnamed_shards(run: RunDirectory) -> list[Path]:
    """Folders of shards whose checkpoint was never written, or is gone; none while a checkpoint cannot be read.

    Forks have shards of their own, beside the checkpoint they began with.
    """
    folders = sorted(path for path in run.checkpoints.glob("shards_*") if _is_shards(path))
    if not folders:
        return []
    named = set()
    for file in run.checkpoints.iterdir():
        if file.is_file() or (file.is_symlink() and not file.exists()):
            try:
                named.add(read_saved(file).shards)
            except DataError:
                if ".pt" in file.name and file.suffix != ".tmp":  # not what an interrupted save left
                    return []
    return [folder for folder in folders if folder.name not in named]


def _is_shards(path: Path) -> bool:
    return SHARDS.fullmatch(path.name) is not None and path.is_dir() and not path.is_symlink()


def freed(surplus: Sequence[Surplus]) -> int:
    """Bytes that removing all of them gives back: a file with another name beside them (best.pt) gives none."""
    names: Counter[tuple[int, int]] = Counter()
    sizes: dict[tuple[int, int], tuple[int, int]] = {}
    for file in (file for one in surplus for file in one.files()):
        status = os.lstat(file)
        names[status.st_dev, status.st_ino] += 1
        sizes[status.st_dev, status.st_ino] = status.st_nlink, status.st_blocks * 512
    return sum(size for file, (links, size) in sizes.items() if names[file] >= links)


def remove(surplus: Iterable[Surplus]) -> None:
    """Remove them, each under its run's lock. Raises `UserError` for a run that was resumed meanwhile, OSError."""
    for one in surplus:
        lock = RunLock(one.run.lock)
        if not lock.acquire():
            raise UserError(f"{one.run.path.name} is live again; its checkpoints stay.")
        try:
            _remove(one)
        finally:
            lock.release()


def _remove(one: Surplus) -> None:
    """Shards go with all that lies in their folder, unless another checkpoint names it too."""
    folder = one.file
    if one.epoch is not None:
        folder = one.file.with_name(shards_of(one.file) or one.file.name)
        one.file.unlink(missing_ok=True)
    if _is_shards(folder) and folder in unnamed_shards(one.run):
        shutil.rmtree(folder)
