"""`cockpit data parse`: logs of keyboard and mouse, or recordings of version 1, become recordings.

Nobody was filmed while a log was made: the gestures are those that the demo player would have made, ahead of the real
controls, and the recordings say so (`pose_synthesised`). They show how the engine does on the timing of a real person,
no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np

from engines.basics.errors import DataError, UserError
from engines.basics.files import make_directory, remove_stale_temporaries
from engines.tasks import TaskContext
from projects.controls.importers import kinds
from projects.controls.importers.kinds import Kind, Take
from projects.controls.importers.lines import size
from projects.controls.importers.meter import Meter
from projects.controls.importers.play import Play
from projects.controls.layout import WINDOW
from projects.controls.recordings import Recording, write_recording

Plan: TypeAlias = list[tuple[Take, list[str]]]
"""Every take, and the titles of the sessions that it becomes."""


class _Order(msgspec.Struct, forbid_unknown_fields=True):
    source: str
    out: str
    kind: str | None = None
    fps: float = 20.0
    sessions: int = 8  # so that some can be held out


def parse(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Read files, all to their end, and only then write what they become.

    arguments: source (a file or a folder of files), out (a new or empty folder), kind (else by how a file begins), fps
    (20) and sessions (8) of what is made of logs: every sitting of a log gives at least one session, all together about
    as many as asked for. A recording stays one and keeps its rate. Raises `UserError` for a bad argument and
    `DataError` for a bad file or folder, naming the line.
    """
    order = _check(arguments)
    source, out = Path(order.source), Path(order.out)
    files = _files(source, order.kind, context)
    meter = Meter(context, sum(size(path) for path in files))
    takes = {path: list(kind.read(path, order.fps, meter)) for path, kind in files.items()}
    plan = _plan(takes, order.sessions)
    titles = [title for _, some in plan for title in some]
    try:
        _claim(out, [f"{title}.npz" for title in titles])
        for done, recording in enumerate(_recordings(plan)):
            context.progress(done, len(titles), "sessions")
            write_recording(out / f"{recording.name}.npz", recording)
    except OSError as error:
        raise DataError(f"{error.filename or out}: cannot be written ({error.strerror or error}).") from None
    context.log(_summary(out, order, plan))
    context.progress(len(titles), len(titles), "sessions")


def _check(arguments: Mapping[str, Any]) -> _Order:
    try:
        order = msgspec.convert(dict(arguments), _Order)
    except msgspec.ValidationError as error:
        raise UserError(f"Logs cannot be parsed with these arguments: {error}.") from None
    if not 1 <= order.fps <= 1000:
        raise UserError(f"fps is {order.fps}, expected 1 to 1000 frames a second.")
    if not 1 <= order.sessions <= 10_000:
        raise UserError(f"sessions is {order.sessions}, expected 1 to 10000.")
    return order


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


def _claim(out: Path, files: list[str]) -> None:
    """Make the folder; what is in it may only be an earlier result of the same work."""
    if out.exists() and not out.is_dir():
        raise DataError(f"{out}: is a file, expected a new or empty folder.")
    make_directory(out)
    remove_stale_temporaries(out)
    known = set(files)
    for path in sorted(out.iterdir()):
        if path.name not in known:
            raise DataError(f"{out}: holds {path.name!r}, which this work does not give; choose a new or empty folder.")


def _recordings(plan: Plan) -> Iterator[Recording]:
    rng = np.random.default_rng(0)
    for take, titles in plan:
        yield from take.sessions(titles, rng)


def _summary(out: Path, order: _Order, plan: Plan) -> str:
    frames, sessions = sum(take.frames for take, _ in plan), sum(len(titles) for _, titles in plan)
    said = f"{out}: {frames} frames in {sessions} sessions."
    logs = [take for take, _ in plan if isinstance(take, Play)]
    if logs:
        said += f" Logs have {order.fps:g} frames a second now; their pose is made from the controls."
        if sessions < order.sessions:
            said += f" They are too short for {order.sessions} sessions of at least {WINDOW} frames."
    return said
