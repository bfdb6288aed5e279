"""`cockpit data make controls OUT`: a folder of demo sessions, each whole or absent, and their ceiling beside them.

    OUT/demo.json                       settings, which sessions are finished, and whether that is all of them
    OUT/demo_000_walking.npz            a recording
    OUT/ceiling/demo_000_walking.npz    `expected: (N, 28) float32`, the best prediction of its controls

Interrupted work goes on where it stopped. More sessions can be added later: each depends on seed and number alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from engines.basics.errors import DataError, UserError
from engines.basics.files import make_directory, remove_stale_temporaries, replace_bytes, replace_with
from engines.tasks import TaskContext
from projects.controls.demo.session import make_session, session_name
from projects.controls.recordings import write_recording

CEILING = "ceiling"
_NOTES = "demo.json"
_GENERATOR = 1
"""Goes up when the same seed would give other data, so that old and new sessions are never mixed."""
_LEAST_MINUTES = 0.5


class _Order(msgspec.Struct, forbid_unknown_fields=True):
    out: str
    sessions: int = 12
    minutes: float = 3.0
    seed: int = 0


class _Notes(msgspec.Struct):
    """demo.json: the settings that every session in the folder was made with, and the finished ones."""

    generator: int
    minutes: float
    seed: int
    finished: list[str] = []
    complete: bool = False
    """Nothing of the last order is missing: `cockpit demo` goes by this."""


def make(arguments: Mapping[str, Any], context: TaskContext) -> None:
    """Make the sessions that are not there yet.

    arguments: out (folder), sessions (12), minutes (3) of each, seed (0). Raises `UserError` for a bad argument and
    `DataError` for a folder that holds anything else, or that cannot be written.
    """
    order = _check(arguments)
    out = Path(order.out)
    names = [session_name(number) for number in range(order.sessions)]
    try:
        notes = _open(out, order, names)
        for number, name in enumerate(names):
            context.progress(number, len(names), "sessions")
            if name in notes.finished and all(file.is_file() for file in _files(out, name)):
                continue
            _write(out, order, number)
            notes.finished = sorted({*notes.finished, name})
            _save(out, notes)
            context.log(f"{name}: {order.minutes:g} minutes")
        notes.complete = True
        _save(out, notes)
    except OSError as error:
        raise DataError(f"{error.filename or out}: cannot be written ({error.strerror or error}).") from None
    context.progress(len(names), len(names), "sessions")


def _check(arguments: Mapping[str, Any]) -> _Order:
    try:
        order = msgspec.convert(dict(arguments), _Order)
    except msgspec.ValidationError as error:
        raise UserError(f"Demo data cannot be made with these arguments: {error}.") from None
    if order.sessions < 2:
        raise UserError(f"sessions is {order.sessions}, expected at least 2: one to train on and one to validate.")
    if not (math.isfinite(order.minutes) and order.minutes >= _LEAST_MINUTES):
        raise UserError(f"minutes is {order.minutes}, expected at least {_LEAST_MINUTES} minutes a session.")
    if order.seed < 0:
        raise UserError(f"seed is {order.seed}, expected 0 or more.")
    return order


def _open(out: Path, order: _Order, names: list[str]) -> _Notes:
    """The notes of a folder that may be written to; a new or empty one gets its notes before anything else."""
    if out.exists() and not out.is_dir():
        raise DataError(f"{out}: is a file, expected a new or empty folder.")
    notes = _Notes(_GENERATOR, order.minutes, order.seed)
    present = _present(out)
    if present:
        if _NOTES not in present:
            raise DataError(f"{out}: holds {present[0]!r} and no {_NOTES}; choose a new or empty folder.")
        notes = _read(out / _NOTES)
        ours = {_NOTES, *(str(file.relative_to(out)) for name in names for file in _files(out, name))}
        foreign = [name for name in present if name not in ours]
        if foreign:
            raise DataError(
                f"{out}: holds {foreign[0]!r}, not one of these {len(names)} sessions; choose a new or empty folder."
            )
    if (notes.generator, notes.minutes, notes.seed) != (_GENERATOR, order.minutes, order.seed):
        raise DataError(
            f"{out}: holds demo data of seed {notes.seed} with {notes.minutes:g} minutes a session (generator "
            f"{notes.generator}), not of seed {order.seed} with {order.minutes:g} (generator {_GENERATOR}); choose "
            "another folder."
        )
    make_directory(out / CEILING)
    for folder in (out, out / CEILING):
        remove_stale_temporaries(folder)
    notes.complete = False
    _save(out, notes)
    return notes


def _present(out: Path) -> list[str]:
    """Every file below `out` by its relative name, without what an interrupted write left behind."""
    if not out.exists():
        return []
    files = sorted((path for path in out.rglob("*") if path != out / CEILING), key=lambda path: (len(path.parts), path))
    return [str(path.relative_to(out)) for path in files if not (path.name[0] == "." and path.suffix == ".tmp")]


def _read(path: Path) -> _Notes:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Notes)
    except msgspec.MsgspecError as error:
        raise DataError(f"{path}: damaged ({error}); make the data again in a new folder.") from None


def _save(out: Path, notes: _Notes) -> None:
    replace_bytes(out / _NOTES, msgspec.json.format(msgspec.json.encode(notes)) + b"\n")


def _files(out: Path, name: str) -> tuple[Path, Path]:
    """The recording of a session and its ceiling."""
    return out / f"{name}.npz", out / CEILING / f"{name}.npz"


def _write(out: Path, order: _Order, number: int) -> None:
    session = make_session(order.seed, number, order.minutes)
    recording, ceiling = _files(out, session.recording.name)

    def write(file: IO[bytes]) -> None:
        np.savez(file, allow_pickle=False, expected=session.ceiling)

    replace_with(ceiling, write)
    write_recording(recording, session.recording)
