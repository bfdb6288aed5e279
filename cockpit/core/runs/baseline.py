"""The pinned run of each project, with which the others are compared: one small file in the runs folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from cockpit.core.runs.summary import RunSummary, WatchedRun, look
from cockpit.core.text import plain, run_word
from engines.basics.errors import DataError, UserError
from engines.basics.files import replace_bytes
from engines.basics.lock import alone_with
from engines.basics.reading import decoded, read_bytes
from engines.contract.rundir import RunDirectory

FILE = ".baselines.json"
"""Begins with a point: it is no run."""
LARGEST = 1 << 20


@dataclass(frozen=True)
class Baseline:
    """The pinned run of a project. `run` is None where it is gone or cannot be read."""

    id: str
    run: RunSummary | None

    @property
    def name(self) -> str:
        """Its label, else its word."""
        return (plain(self.run.label) if self.run else "") or run_word(self.id)

    @property
    def problem(self) -> str:
        """A sentence where there is nothing to compare with; empty where there is."""
        if self.run is None:
            return f"The baseline {plain(self.id)} is gone; pin another run."
        return "" if self.run.score is not None else f"The baseline {self.name} has no score yet."


def pinned(folder: Path) -> dict[str, str]:
    """The ids of the pinned runs by project. Raises `DataError` for a damaged file."""
    path = folder / FILE
    try:
        return decoded(read_bytes(path, LARGEST), dict[str, str])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{path} cannot be read ({error}); delete it and pin the baselines again.") from None


def pin(folder: Path, run: RunDirectory) -> None:
    """Make a training the baseline of its project. Raises `UserError` for a task, OSError where it is not possible."""
    info = run.info
    if info.kind != "training":
        raise UserError(f"{info.id} is a {info.kind} ({info.title}); expected a training.")
    _change(folder, info.project, _name(folder, run.path))


def unpin(folder: Path, project: str) -> None:
    """Leave a project without a baseline. Raises OSError where that cannot be written."""
    _change(folder, project, None)


def is_pinned(folder: Path, project: str, path: Path) -> bool:
    """Whether the run at `path` is the baseline of its project. Raises `DataError` for a damaged file."""
    return pinned(folder).get(project) == _name(folder, path)


def _name(folder: Path, path: Path) -> str:
    """As the file has it: a run of the folder by its name."""
    return path.name if path.parent == folder.absolute() else str(path)


def _change(folder: Path, project: str, run: str | None) -> None:
    with alone_with(folder):
        known = pinned(folder)
        known.pop(project, None)
        if run is not None:
            known[project] = run
        replace_bytes(folder / FILE, msgspec.json.encode(known) + b"\n")


def read_baseline(folder: Path, project: str, read: Callable[[Path], RunSummary] = look) -> Baseline | None:
    """The baseline of a project, read now; None where none is pinned. Raises `DataError` for a damaged file."""
    if (name := pinned(folder).get(project)) is None:
        return None
    path = folder / name
    summary = read(path) if path.is_dir() else None
    return Baseline(Path(name).name, None if summary is None or summary.state == "broken" else summary)


class Pins:
    """Which runs of a folder are baselines, looked at again and again. `paths` is replaced, never changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamp = 0
        self.paths: frozenset[Path] = frozenset()

    def poll(self) -> bool:
        """Look again; whether others are pinned. A damaged file pins none: who pins or compares gets the error."""
        try:
            stamp = (self._folder / FILE).stat().st_mtime_ns
        except OSError:
            stamp = 0
        if stamp == self._stamp:
            return False
        self._stamp, before = stamp, self.paths
        try:
            self.paths = frozenset(self._folder / name for name in pinned(self._folder).values())
        except DataError:
            self.paths = frozenset()
        return self.paths != before


class Versus:
    """The baseline that one run is compared with, followed."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._watched: WatchedRun | None = None

    def poll(self) -> tuple[float | None, str]:
        """Score and name of the baseline of the run's project; without a score why there is none to compare with.

        No words where none is pinned. Never raises for what files hold.
        """
        folder = self._run.path.parent
        try:
            name = pinned(folder).get(self._run.info.project)
        except DataError:
            name = None
        if name is None:
            return None, ""
        path = folder / name
        if path == self._run.path:
            return None, "baseline"
        if self._watched is None or self._watched.run.path != path:
            self._watched = WatchedRun(path)
        self._watched.poll()
        found = self._watched.summary if path.is_dir() else None
        one = Baseline(path.name, None if found is None or found.state == "broken" else found)
        if one.run is None:
            return None, f"baseline {one.name} is gone"
        return (one.run.score, one.name) if one.run.score is not None else (None, f"baseline {one.name} has no score")
