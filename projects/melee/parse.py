"""`cockpit data parse` of replays: files over processes, games into shards, a reason for each one that is left out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from engines.basics.amounts import duration, size
from engines.tasks import Table, TaskContext
from engines.tasks.arguments import as_struct
from engines.tasks.each_file import Left, Taken, each_file
from engines.tasks.folder import OutputFolder, output_folder
from projects.melee.game import REASONS, Game, NotTaken, Reason
from projects.melee.replay import Rollback, read_replay
from projects.melee.sources import NOTES, Source, on_disk, sources
from projects.melee.store import FORMAT, SHARD_ROWS, Contents, ShardWriter, is_ours, read_contents, shard_files
from projects.melee.table import read_table

MANY = 100_000
"""Games that an estimate is given for."""


class _Order(msgspec.Struct):
    source: Path
    out: Path
    rollback: Rollback = "last"
    least_frames: Annotated[int, Meta(ge=2)] = 1800
    shard_rows: Annotated[int, Meta(ge=1000, le=10_000_000)] = SHARD_ROWS
    workers: Annotated[int, Meta(ge=1, le=1024)] | None = None


@dataclass(frozen=True)
class Refused:
    """A readable replay that is none to learn from."""

    reason: Reason
    text: str


def read(source: Source, *, rollback: Rollback, least_frames: int) -> Game | Refused:
    """One replay, in a process of its own. What is damaged raises whatever its reader raises."""
    try:
        with on_disk(source) as path:
            return read_replay(path, rollback, least_frames) if source.is_replay else read_table(path, least_frames)
    except NotTaken as refusal:
        return Refused(refusal.reason, str(refusal))


def parse(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Read every replay below `source` that is not in the store `out` yet.

    Stopped or killed anywhere and started again, it ends with the same files, byte for byte. Raises `UserError`.
    """
    order = as_struct(arguments, _Order)
    settings = {"made": "games", "format": FORMAT, "rollback": order.rollback, "least_frames": order.least_frames}
    with output_folder(order.out, NOTES, settings, is_ours) as folder:
        began = time.monotonic()
        earlier = _earlier(folder)
        seen = {name for contents in earlier for name in contents.seen}
        new = []
        for source in sources(order.source):
            context.check()
            if source.name not in seen:
                new.append(source)
        filler = _Filler(folder, order.shard_rows, earlier)
        work = partial(read, rollback=order.rollback, least_frames=order.least_frames)
        with each_file(work, new, context.check, workers=order.workers) as outcomes:
            for done, outcome in enumerate(outcomes, start=1):
                filler.take(outcome)
                context.progress(done, len(new), "replays")
        filler.close()
        folder.complete()
        _say(order.out, _earlier(folder), len(new), time.monotonic() - began, context)


def _earlier(folder: OutputFolder) -> list[Contents]:
    """What the finished shards hold."""
    shards: list[str] = []
    while folder.has(f"{len(shards):05d}", *shard_files(len(shards))):
        shards.append(f"{len(shards):05d}")
    return list(read_contents(folder.path, shards))


class _Filler:
    """Puts outcomes into shards, in their order; a game that is there already is left out as a copy."""

    def __init__(self, folder: OutputFolder, most_rows: int, earlier: Sequence[Contents]) -> None:
        self._folder, self._most = folder, most_rows
        self._shard = len(earlier)
        self._writer = ShardWriter()
        self._known = {game.digest: game.source for contents in earlier for game in contents.games}

    def take(self, outcome: Taken[Source, Game | Refused] | Left[Source]) -> None:
        source = outcome.item
        if isinstance(outcome, Left):
            self._writer.leave(source.name, "damaged", outcome.reason)
        elif isinstance(outcome.value, Refused):
            self._writer.leave(source.name, outcome.value.reason, outcome.value.text)
        elif (first := self._known.setdefault(outcome.value.digest, source.name)) != source.name:
            self._writer.leave(source.name, "copy", f"the same game as {first}")
        else:
            self._writer.add(source.title, source.name, outcome.value)
        if self._writer.rows >= self._most:
            self.close()

    def close(self) -> None:
        """Write what has been gathered, if anything."""
        if self._writer.is_empty:
            return
        self._writer.write(self._folder.path, f"{self._shard:05d}")
        self._folder.finish(f"{self._shard:05d}")
        self._writer = ShardWriter()
        self._shard += 1


def _say(out: Path, shards: Sequence[Contents], new: int, seconds: float, context: TaskContext) -> None:
    """What the whole store holds now, and what 100,000 replays would take at this rate."""
    games = [game for shard in shards for game in shard.games]
    left = Counter(one.reason for shard in shards for one in shard.left)
    frames, whole = sum(game.frames for game in games), sum(not game.missing for game in games)
    context.log(f"{out}: {len(games)} games with {frames:,} frames, {whole} with every field.")
    if new and games:
        written = sum(path.stat().st_size for path in out.iterdir())
        context.log(
            f"{MANY:,} such replays take about {duration(seconds / new * MANY)} at this rate, and "
            f"{size(written / (len(games) + left.total()) * MANY)}."
        )
    counts = {"files": len(games) + left.total(), "taken": len(games), "with every field": whole, "frames": frames}
    context.report(
        {
            "counts": Table(("replays", "number"), tuple(counts.items())),
            "left": Table(
                ("left out", "files", "because"), tuple((name, left[name], REASONS[name]) for name in REASONS)
            ),
        }
    )
