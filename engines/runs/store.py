"""The runs folder: runs made in it, listed, and found by what a person types."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from engines.basics import files
from engines.basics.errors import DataError, UserError, nearest
from engines.contract.rundir import Kind, RunDirectory, RunInfo, TrainLoss
from engines.host.identity import maker, seal

WORDS = tuple(
    """
    amber ash aspen basil birch cedar cobalt copper coral crane delta dune ember fern fjord flint garnet harbor
    hazel heron indigo iris ivory jade juniper kelp lark linen lotus maple marsh meadow mica moss north oak ocean
    olive onyx opal otter pearl pine plum quartz raven reed river robin rose sable sage sand slate spruce stone
    storm swift teal thorn tide topaz tulip umber vale violet willow wren
    """.split()
)


SHOWN = 4
"""Ids that an error lists."""


def runs_folder() -> Path:
    """Where runs live: `$COCKPIT_RUNS`, else `./runs`."""
    return Path(os.environ.get("COCKPIT_RUNS") or "runs").absolute()


def new_run_id(project: str, now: float | None = None, taken: Collection[str] = ()) -> str:
    """`<project>-<yyyymmdd-hhmmss>-<word>`, in UTC: sortable, and easy to say; the word is not among the `taken` ones.

    Where all words are taken it is any of them: the time of the id still tells the runs apart.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return f"{project}-{stamp}-{secrets.choice([word for word in WORDS if word not in taken] or WORDS)}"


def _claim(folder: Path, project: str, make: Callable[[Path], None]) -> Path:
    """What `make` makes in `folder` under a run id that no other run has."""
    taken = {word_of(name) for name in os.listdir(folder)}
    while True:
        entry = folder / new_run_id(project, taken=taken)
        try:
            make(entry)
        except FileExistsError:
            continue
        return entry


def create_run(
    project: str,
    resolved_config: str,
    *,
    kind: Kind,
    engine: str,
    title: str,
    label: str = "",
    path: Path | None = None,
    parent: str | None = None,
    fork_step: int | None = None,
    replay_of: str | None = None,
    train_loss: TrainLoss = "pooled",
    edition: int = 1,
) -> RunDirectory:
    """Make a run directory (at `path`, linked from the runs folder, or a new one there) and write what the run is.

    Raises `DataError` when the place cannot be written or is occupied.
    """
    folder = runs_folder()
    try:
        files.make_directory(folder)
        if path is None:
            path = entry = _claim(folder, project, lambda new: new.mkdir(mode=files.DIRECTORY_MODE))
        else:
            path = path.absolute()
            if path.exists() and (not path.is_dir() or any(path.iterdir())):
                raise DataError(
                    f"The output directory {path} is not empty; resume the run in it with `cockpit resume {path}`, "
                    "or choose another output.dir."
                )
            files.make_directory(path)
            listed = path.parent.samefile(folder)
            _forget_earlier(folder, path)
            entry = path if listed else _claim(folder, project, lambda new: new.symlink_to(path))
    except OSError as error:
        raise DataError(
            f"No run directory can be made at {error.filename or folder} ({error.strerror}); choose another output.dir "
            "or set COCKPIT_RUNS to a folder you can write to."
        ) from None
    run = RunDirectory(path)
    info = RunInfo(
        id=entry.name, project=project, kind=kind, engine=engine, title=title, label=label, created=time.time(),
        parent=parent, fork_step=fork_step, replay_of=replay_of, train_loss=train_loss, edition=edition,
        made_by=maker(), seal=seal(entry.name),
    )  # fmt: skip
    try:
        run.make()
        run.write_config(resolved_config)
        run.write_info(info)
    except (DataError, OSError) as error:  # no command would know what is left
        _undo(run, entry)
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"The run directory {run.path} cannot be written ({error.strerror}); it was removed again. Free some "
            "space, or choose another output.dir."
        ) from None
    return run


def _forget_earlier(folder: Path, path: Path) -> None:
    """Remove the names of runs that were at `path` and were deleted there. Raises OSError."""
    for entry in folder.iterdir():
        if entry.is_symlink() and entry.readlink() == path:
            entry.unlink()


def _undo(run: RunDirectory, entry: Path) -> None:
    """Remove what was made of a run that nobody can start, and its name among the runs."""
    shutil.rmtree(run.path, ignore_errors=True)
    if entry != run.path:
        entry.unlink(missing_ok=True)


def list_runs(folder: Path | None = None) -> list[RunDirectory]:
    """Every run in the runs folder, newest first; entries without a run.json, or being deleted, are not runs."""
    folder = folder or runs_folder()
    if not folder.is_dir():
        return []
    entries = (entry for entry in folder.iterdir() if not entry.name.startswith("."))
    # os.path.isfile: Path.is_file raises for a folder that may not be entered, which would hide every other run.
    runs = [RunDirectory(entry) for entry in entries if os.path.isfile(entry / "run.json")]
    return sorted(runs, key=lambda run: run.path.name.rsplit("-", 3)[1:], reverse=True)


def _created(run: RunDirectory) -> float:
    try:
        return run.info.created
    except DataError:  # a damaged run is never the one that is meant
        return 0.0


def find_run(name: str, folder: Path | None = None) -> RunDirectory:
    """The run in `folder` (default: the runs folder) that `name` means: a path, an id, its last word, its label, a
    unique part of these, or `last`.

    `last` is the newest training, whatever task came later; where there is none, the newest task. Raises `UserError`.
    """
    if not name:
        raise UserError("RUN is empty: give an id, its word, a label, a path, or `last`.")
    path = Path(name)
    if os.path.isfile(path / "run.json"):
        return RunDirectory(path)
    folder = folder or runs_folder()
    runs = list_runs(folder)
    if name == "last" and runs:
        return max([run for run in runs if _kind(run) == "training"] or runs, key=_created)
    for named in _readings(name, runs):
        if len(named) == 1:
            return named[0]
        if named:
            ids = sorted(run.path.name for run in named)
            more = f" or {len(ids) - SHOWN} more" * (len(ids) > SHOWN)
            raise UserError(f"{name!r} could be {' or '.join(ids[:SHOWN])}{more}; give more of the id.")
    if os.path.lexists(folder / name):
        _ = RunDirectory(folder / name).info  # raises, saying why what is there cannot be meant
    known = [run.path.name for run in runs] + [word_of(run.path.name) for run in runs]
    raise UserError(f"No run is called {name!r} in {folder}{nearest(name, known)}; `cockpit ls` lists the runs.")


def _readings(name: str, runs: Sequence[RunDirectory]) -> Iterator[list[RunDirectory]]:
    """The runs that `name` may mean, the surest way of reading it first."""
    yield [run for run in runs if run.path.name == name]
    yield [run for run in runs if word_of(run.path.name) == name]
    labels = {run.path.name: _label(run) for run in runs}
    yield [run for run in runs if labels[run.path.name] == name]
    yield [run for run in runs if run.path.name.startswith(name)]
    part = name.casefold()
    yield [run for run in runs if part in run.path.name.casefold() or part in labels[run.path.name].casefold()]


def word_of(run_id: str) -> str:
    """The last word of an id, by which a run is spoken of."""
    return run_id.rsplit("-", 1)[-1]


def find_training(name: str) -> RunDirectory:
    """As `find_run`, of a training alone. Raises `UserError`."""
    run = find_run(name)
    if (info := run.info).kind != "training":
        raise UserError(f"{info.id} is a {info.kind} ({info.title}); expected a training.")
    return run


def _kind(run: RunDirectory) -> Kind | None:
    try:
        return run.info.kind
    except DataError:
        return None


def _label(run: RunDirectory) -> str:
    try:
        return run.info.label
    except DataError:
        return ""
