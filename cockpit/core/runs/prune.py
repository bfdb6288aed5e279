"""Checkpoints that a rule takes away from runs that have ended: which, and what that frees."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engines.basics.errors import UserError
from engines.basics.lock import RunLock, lock_holder
from engines.contract.rundir import RunDirectory
from engines.runs.keeping import KeepRule, Scored
from engines.runs.saved import shard_files
from engines.runs.state import RunReader

_KEPT = re.compile(r"epoch_(\d{3,9})\.pt")
OVER = ("finished", "early-stopped")
"""States of runs that have nothing left to do."""


@dataclass(frozen=True)
class Surplus:
    """A checkpoint that goes."""

    run: RunDirectory
    file: Path
    epoch: int
    score: float | None


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
        if match and int(match[1]) in epochs and int(match[1]) not in kept:
            found.append(Surplus(run, file, int(match[1]), epochs[int(match[1])].score))
    if last and state in OVER and run.last.is_file() and run.best.is_file():
        newest = max(epochs.values(), key=lambda one: one.epoch, default=Scored(0, "", None))
        found.append(Surplus(run, run.last, newest.epoch, newest.score))
    return found


def freed(surplus: Sequence[Surplus]) -> int:
    """Bytes that removing all of them gives back: a file with another name beside them (best.pt) gives none."""
    names: Counter[tuple[int, int]] = Counter()
    sizes: dict[tuple[int, int], tuple[int, int]] = {}
    for file in (file for one in surplus for file in (one.file, *shard_files(one.file))):
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
            shards = shard_files(one.file)
            one.file.unlink(missing_ok=True)
            for file in shards:
                file.unlink(missing_ok=True)
            if shards:
                shards[0].parent.rmdir()
        finally:
            lock.release()
