"""The kinds of files that can be brought in, one entry each; a file is known by how it begins, not by its name."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from engines.basics.errors import DataError, UserError, nearest
from engines.basics.npz import ZIP_START
from projects.controls.importers import action_list, minerl, v1, vpt
from projects.controls.importers.lines import first_line
from projects.controls.importers.meter import Meter
from projects.controls.importers.play import Play
from projects.controls.importers.ticks import Tick, packed, sittings
from projects.controls.layout import WINDOW
from projects.controls.recordings import Recording


class Take(Protocol):
    """What was played without a break: a sitting of a log, or a recording."""

    frames: int
    least_sessions: int
    most_sessions: int

    def sessions(self, titles: Sequence[str], rng: np.random.Generator) -> Iterator[Recording]:
        """As many sessions as titles, each made when it is asked for; `rng` draws what has to be made up."""
        ...


LOG_FPS = 20.0
"""Frames a second of what is made of a log, where no rate is asked for."""
Read = Callable[[Path, float | None, Meter], Sequence[Take]]
"""(file, frames a second if that is asked for, meter) to what was played, checked to the end. Raises `DataError`."""


@dataclass(frozen=True)
class Kind:
    """looks: what such a file holds, for a person. recognises: whether a file that begins with these bytes is one."""

    name: str
    looks: str
    recognises: Callable[[bytes], bool]
    read: Read


def _log(name: str, ticks: Callable[[Path, Meter], Iterator[Tick]]) -> Read:
    """The reader of a kind of log; sittings that are shorter than a window are left out, and said so."""

    def read(path: Path, wanted: float | None, meter: Meter) -> list[Play]:
        fps = LOG_FPS if wanted is None else wanted
        rows = packed(ticks(path, meter))
        seconds = float(rows["time"][-1] - rows["time"][0]) if len(rows) else 0.0
        meter.say(f"{path}: a {name} log of {len(rows)} ticks in {seconds:.1f} s.")
        parts = sittings(path, rows, meter)
        plays = [Play(part, fps, name) for part in parts if len(part) >= 2]
        kept = [play for play in plays if play.frames >= WINDOW]
        longest = max((play.frames for play in plays), default=sum(map(len, parts)))
        if not kept:
            raise DataError(
                f"{path}: gives {longest} frames at {fps:g} a second"
                f"{'' if len(parts) == 1 else ' in its longest sitting'}, expected at least {WINDOW}."
            )
        if len(kept) < len(parts):
            meter.say(f"{path}: {len(parts) - len(kept)} sittings of fewer than {WINDOW} frames are left out.")
        return kept

    return read


KINDS = (
    Kind("minerl", "a JSON object a line with action.keyboard", minerl.recognises, _log("minerl", minerl.ticks)),
    Kind("vpt", "a JSON object a line with keyboard.keys and mouse", vpt.recognises, _log("vpt", vpt.ticks)),
    Kind("list", "one JSON array with camera", action_list.recognises, _log("list", action_list.ticks)),
    Kind("v1", "a version-1 .npz recording", lambda start: start.startswith(ZIP_START), v1.read),
)


def named(name: str) -> Kind:
    """The kind of that name. Raises `UserError`."""
    for kind in KINDS:
        if kind.name == name:
            return kind
    names = [kind.name for kind in KINDS]
    raise UserError(f"kind is {name!r}, expected {', '.join(names[:-1])} or {names[-1]}{nearest(name, names)}.")


def recognise(path: Path) -> Kind | None:
    """The kind of a file, if it is of one."""
    start = first_line(path)
    return next((kind for kind in KINDS if kind.recognises(start)), None)


def recognised(path: Path) -> Kind:
    """The kind of a file. Raises `DataError` that says what is understood and what was seen."""
    kind = recognise(path)
    if kind is None:
        seen = ascii(first_line(path)[:40].decode("utf-8", "replace"))
        begins = "is empty" if seen == "''" else f"begins with {seen}"
        raise DataError(f"{path}: {begins}, expected {understood()}.")
    return kind


def understood() -> str:
    """What can be read, for a person."""
    return ", ".join(f"{kind.looks} ({kind.name})" for kind in KINDS)


def why_not(path: str) -> str:
    """Empty where `path` is a recording, a log that can become some, or a folder of such; else what was expected.

    Looks at how files begin, and no further: what is wrong inside is said by whoever reads them. Raises OSError.
    """
    source = Path(path).expanduser()
    files = sorted(file for file in source.iterdir() if file.is_file()) if source.is_dir() else [source]
    if any(_is_ours(file) for file in files):
        return ""
    return f"no recording (.npz with frames and controls) and no log: {understood()}"


def _is_ours(file: Path) -> bool:
    """A damaged archive is taken for a recording, so that it is said where it is damaged."""
    kind = recognise(file)
    if kind is None or not first_line(file).startswith(ZIP_START):
        return kind is not None
    try:
        with zipfile.ZipFile(file) as archive:
            return {"frames.npy", "controls.npy"} <= set(archive.namelist())
    except (zipfile.BadZipFile, OSError):
        return file.suffix == ".npz"
