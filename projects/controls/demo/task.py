"""`cockpit data make controls OUT`: a folder of demo sessions, each whole or absent, and their ceiling beside them.

    OUT/demo.json                       settings, which sessions are finished, and whether that is all of them
    OUT/demo_000_walking.npz            a recording
    OUT/ceiling/demo_000_walking.npz    `expected: (N, 28) float32`, the best prediction of its controls

Interrupted work is resumed where it stopped. More sessions can be added later: each depends on seed and number alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from engines.basics.files import make_directory, replace_with
from engines.tasks import TaskContext
from engines.tasks.arguments import as_struct
from engines.tasks.folder import output_folder
from projects.controls.demo.session import make_session, session_name
from projects.controls.recordings import write_recording

CEILING = "ceiling"
_NOTES = "demo.json"
_GENERATOR = 1
"""Goes up when the same seed would give other data, so that old and new sessions are never mixed."""


class _Order(msgspec.Struct):
    out: Path
    sessions: Annotated[int, Meta(ge=2, description="one to train on and one to validate")] = 12
    minutes: Annotated[float, Meta(ge=0.5)] = 3.0
    seed: Annotated[int, Meta(ge=0)] = 0


def make(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Make the sessions that are not there yet.

    arguments: out (folder), sessions (12), minutes (3) of each, seed (0). Raises `UserError` for a bad argument and
    `DataError` for a folder that holds anything else, or that cannot be written.
    """
    order = as_struct(arguments, _Order)
    files = {name: _files(name) for name in map(session_name, range(order.sessions))}
    known = {file for some in files.values() for file in some}
    settings = {"generator": _GENERATOR, "minutes": order.minutes, "seed": order.seed}
    with output_folder(order.out, _NOTES, settings, known.__contains__) as folder:
        make_directory(order.out / CEILING)
        for number, (name, some) in enumerate(files.items()):
            context.progress(number, len(files), "sessions")
            if not folder.has(name, *some):
                _write(order, number)
                folder.finish(name)
                context.log(f"{name}: {order.minutes:g} minutes")
        folder.complete()
    context.progress(len(files), len(files), "sessions")


def _files(name: str) -> tuple[str, str]:
    """The recording of a session and its ceiling."""
    return f"{name}.npz", f"{CEILING}/{name}.npz"


def _write(order: _Order, number: int) -> None:
    session = make_session(order.seed, number, order.minutes)
    recording, ceiling = _files(session.recording.name)

    def write(file: IO[bytes]) -> None:
        np.savez(file, allow_pickle=False, expected=session.ceiling)

    replace_with(order.out / ceiling, write)
    write_recording(order.out / recording, session.recording)
