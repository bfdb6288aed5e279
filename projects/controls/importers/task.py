"""`cockpit data parse`: logs of keyboard and mouse, or recordings of version 1, become recordings.

Nobody was filmed while a log was made: the gestures are those that the demo player would have made, ahead of the real
controls, and the recordings say so (`pose_synthesised`). They show how the engine does on the timing of a real person,
no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from engines.basics.errors import DataError
from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from engines.tasks.folder import claimed
from projects.controls.importers import kinds
from projects.controls.importers.kinds import Kind, Take
from projects.controls.importers.lines import size
from projects.controls.importers.meter import Meter
from projects.controls.importers.play import Play
from projects.controls.layout import WINDOW
from projects.controls.recordings import Recording, write_recording

Plan: TypeAlias = list[tuple[Take, list[str]]]
"""Every take, and the titles of the sessions that it becomes."""


class _Order(msgspec.Struct):
    source: Path
    out: Path
    kind: str | None = None
    fps: Annotated[float, Meta(ge=1, le=1000)] | None = None
    sessions: Annotated[int, Meta(ge=1, le=10_000)] = 8  # so that some can be held out


def parse(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Read files, all to their end, and only then write what they become.

    arguments: source (a file or a folder of files), out (a new or empty folder), kind (else by how a file begins), fps
    (20 of logs; a recording keeps its own where this is not given) and sessions (8) of what is made of logs: every
    sitting of a log gives at least one session, all together about as many as asked for. A recording stays one. Raises
    `UserError` for a bad argument and `DataError` for a bad file or folder, naming the line.
    """
    order = as_struct(arguments, _Order)
    files = _files(order.source, order.kind, context)
    meter = Meter(context, sum(size(path) for path in files))
    takes = {path: list(kind.read(path, order.fps, meter)) for path, kind in files.items()}
    plan = _plan(takes, order.sessions)
    titles = [title for _, some in plan for title in some]
    known = {f"{title}.npz" for title in titles}
    with claimed(order.out, known.__contains__):
        for done, recording in enumerate(_recordings(plan)):
            context.progress(done, len(titles), "sessions")
            write_recording(order.out / f"{recording.name}.npz", recording)
    context.log(_summary(order, plan))
    context.progress(len(titles), len(titles), "sessions")


def _files(source: Path, name: str | None, context: TaskContext) -> dict[Path, Kind]:
    """What is to be read, and as which kind. In a folder, files that are of no kind (or not of `name`) are left out."""
    forced = None if name is None else kinds.named(name)
    if not source.is_dir():
        return {source: forced or kinds.recognised(source)}
    files: dict[Path, Kind] = {}
    others: list[str] = []
    try:
        for path in sorted(path for path in source.iterdir() if path.is_file()):
            kind = kinds.recognise(path)
            if kind is None or forced not in (None, kind):
                others.append(path.name)
            else:
                files[path] = kind
    except OSError as error:
        raise DataError(f"{source}: cannot be read ({error.strerror or error}).") from None
    if not files:
        raise DataError(f"{source}: holds no file to read among {len(others)}, expected {kinds.understood()}.")
    if others:
        some = ", ".join(map(ascii, others[:5])) + (" …" if len(others) > 5 else "")
        context.log(f"{source}: other files are left out ({len(others)}): {some}.")
    return files


def _plan(takes: Mapping[Path, list[Take]], sessions: int) -> Plan:
    """Every take with the titles of its sessions, by its share of all that was played."""
    stems = [path.stem for path in takes]
    for path in takes:
        if stems.count(path.stem) > 1:
            raise DataError(f"{path}: another file would give sessions of the same name; rename one of them.")
    total = sum(take.frames for some in takes.values() for take in some)
    plan: Plan = []
    for path, some in takes.items():
        counts = [
            max(min(round(sessions * take.frames / total), take.most_sessions), take.least_sessions) for take in some
        ]
        digits = len(str(sum(counts) - 1))
        numbered = iter([path.stem] if counts == [1] else [f"{path.stem}_{k:0{digits}d}" for k in range(sum(counts))])
        plan += [(take, list(islice(numbered, count))) for take, count in zip(some, counts, strict=True)]
    return plan


def _recordings(plan: Plan) -> Iterator[Recording]:
    rng = np.random.default_rng(0)
    for take, titles in plan:
        yield from take.sessions(titles, rng)


def _summary(order: _Order, plan: Plan) -> str:
    frames, sessions = sum(take.frames for take, _ in plan), sum(len(titles) for _, titles in plan)
    said = f"{order.out}: {frames} frames in {sessions} sessions."
    logs = [take for take, _ in plan if isinstance(take, Play)]
    if logs:
        said += f" Logs have {logs[0].fps:g} frames a second now; their pose is made from the controls."
        if sessions < order.sessions:
            said += f" They are too short for {order.sessions} sessions of at least {WINDOW} frames."
    return said
