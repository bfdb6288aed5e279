"""The run directory: where everything of a run lives, and the two small records that say what it is.

The truth about a run is this directory, never the memory of a process.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec

from engines.contract import files
from engines.contract.errors import DataError, UserError, nearest

WORDS = tuple(
    """
    amber ash aspen basil birch cedar cobalt copper coral crane delta dune ember fern fjord flint garnet harbor
    hazel heron indigo iris ivory jade juniper kelp lark linen lotus maple marsh meadow mica moss north oak ocean
    olive onyx opal otter pearl pine plum quartz raven reed river robin rose sable sage sand slate spruce stone
    storm swift teal thorn tide topaz tulip umber vale violet willow wren
    """.split()
)

Kind = Literal["training", "task"]


class RunInfo(msgspec.Struct, kw_only=True):
    """`run.json`: small, replaced atomically."""

    id: str
    project: str
    kind: Kind = "training"
    engine: str = "engines.train"
    """Module that the supervisor starts as the engine; empty for a run that another program made."""
    title: str = ""
    """What it does, in words: the config's file name, or a task and its target."""
    label: str = ""
    """A person's own name for the run."""
    notes: str = ""
    """What a person wants to remember of it."""
    parent: str | None = None
    fork_step: int | None = None
    replay_of: str | None = None
    """The run that this one does once more."""
    created: float = 0.0

    @property
    def why_no_resume(self) -> str:
        """Why nobody can go on with it, however it ended; empty where that depends on its end."""
        if self.kind != "training":
            return f"{self.id} is a {self.kind}, and only trainings resume; start the work again instead."
        if not self.engine:
            return f"{self.id} is of a program that is not the cockpit's, and only that can go on with it."
        if self.replay_of is not None:
            return (
                f"{self.id} is a replay, and one goes through at once; "
                f"begin anew with `cockpit replay {self.replay_of}`."
            )
        return ""


class ProcessMark(msgspec.Struct):
    """A process told apart from a later one with the same number by its start time."""

    pid: int
    started: float


class End(msgspec.Struct, kw_only=True):
    """How an attempt ended, written by the supervisor also when the engine could not."""

    reason: Literal["finished", "early-stopped", "stopped", "out-of-budget", "failed"]
    time: float
    exit_code: int | None = None
    signal: str | None = None
    oom_kill: bool = False
    last_step: int = 0
    error: str = ""


class Attempt(msgspec.Struct, kw_only=True):
    """`attempts/<n>.json`: one per start; the newest is the state of the run."""

    number: int
    started: float
    """Of one that waited for its device: when its turn came."""
    queued: bool = False
    """It waits for its device, or ended while it did: it has cost nothing."""
    supervisor: ProcessMark
    engine: ProcessMark | None = None
    boot_id: str = ""
    host: str = ""
    device: str = ""
    usd_per_hour: float = 0.0
    versions: dict[str, str] = {}
    git: str | None = None
    command: list[str] = []
    ended: End | None = None

    @property
    def reports_itself(self) -> bool:
        """Of a program that is its own supervisor: nobody is left to write down how it was killed."""
        return self.engine == self.supervisor


def _below(*names: str) -> cached_property[Path]:
    """A path in a run's directory, made when it is first asked for: a list of a thousand runs asks for few of them."""
    return cached_property(lambda run: run.path.joinpath(*names))


class RunDirectory:
    """Paths and records of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    info_file = _below("run.json")
    config = _below("config_resolved.yaml")
    attempts = _below("attempts")
    lock = _below("engine.lock")
    events = _below("events.jsonl")
    commands = _below("commands.jsonl")
    steps = _below("metrics", "steps")
    system = _below("metrics", "system")
    train_metrics = _below("metrics", "train_metrics.jsonl")
    val_metrics = _below("metrics", "val_metrics.jsonl")
    checkpoints = _below("checkpoints")
    last = _below("checkpoints", "last.pt")
    best = _below("checkpoints", "best.pt")
    fork = _below("checkpoints", "fork.pt")
    """Of a fork: the checkpoint of its parent that it began with, kept."""
    stdout = _below("logs", "stdout.log")
    supervisor_log = _below("logs", "supervisor.log")
    review = _below("review")
    report = _below("report.json")
    export = _below("export")

    def make(self) -> None:
        """Make the directory and the folders in it. Raises `DataError` where that is not possible."""
        folders = (self.attempts, self.steps, self.checkpoints, self.stdout.parent, self.review, self.export)
        try:
            for folder in (self.path, *folders):
                files.make_directory(folder)
        except OSError as error:
            raise DataError(
                f"The run directory {self.path} cannot be made ({error.strerror}); choose another output.dir "
                "or set COCKPIT_RUNS to a folder you may write to."
            ) from None

    @property
    def info(self) -> RunInfo:
        try:
            return msgspec.json.decode(self.info_file.read_bytes(), type=RunInfo)
        except FileNotFoundError:
            raise DataError(f"{self.path} is not a run directory: it has no run.json.") from None
        except (msgspec.DecodeError, OSError) as error:
            raise DataError(f"{self.info_file} cannot be read as a run's record ({error}).") from None

    @property
    def recorded_config(self) -> Path:
        """The config as the program wrote it last: a person may have edited `config` since."""
        kept = self.attempts / "config.yaml"
        return kept if kept.is_file() else self.config

    def write_config(self, resolved: str) -> None:
        """Put on record what the run is trained with. Raises OSError."""
        for path in (self.attempts / "config.yaml", self.config):
            files.replace_bytes(path, resolved.encode())

    def write_info(self, info: RunInfo) -> None:
        files.replace_bytes(self.info_file, msgspec.json.format(msgspec.json.encode(info)))

    def attempt_numbers(self) -> list[int]:
        if not self.attempts.is_dir():
            return []
        return sorted(int(file.stem) for file in self.attempts.glob("*.json") if file.stem.isdigit())

    def attempt(self, number: int) -> Attempt:
        try:
            return msgspec.json.decode((self.attempts / f"{number}.json").read_bytes(), type=Attempt)
        except (msgspec.DecodeError, OSError) as error:
            raise DataError(f"{self.attempts / f'{number}.json'} cannot be read ({error}).") from None

    def newest_attempt(self) -> Attempt | None:
        numbers = self.attempt_numbers()
        return self.attempt(numbers[-1]) if numbers else None

    def provenance(self, number: int) -> Path:
        """What an attempt was made with, as its engine recorded it."""
        return self.attempts / f"{number}.provenance.json"

    def write_attempt(self, attempt: Attempt) -> None:
        files.replace_bytes(self.attempts / f"{attempt.number}.json", msgspec.json.format(msgspec.json.encode(attempt)))


def runs_folder() -> Path:
    """Where runs live: `$COCKPIT_RUNS`, else `./runs`."""
    return Path(os.environ.get("COCKPIT_RUNS") or "runs").absolute()


def new_run_id(project: str, now: float | None = None) -> str:
    """`<project>-<yyyymmdd-hhmmss>-<word>`, in UTC: sortable, and easy to say."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return f"{project}-{stamp}-{secrets.choice(WORDS)}"


def _claim(folder: Path, project: str, make: Callable[[Path], None]) -> Path:
    """What `make` makes in `folder` under a run id that no other run has."""
    while True:
        entry = folder / new_run_id(project)
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
                    f"The output directory {path} is occupied; resume the run in it with `cockpit resume {path}`, "
                    "or choose another output.dir."
                )
            files.make_directory(path)
            listed = path.parent.samefile(folder)
            entry = path if listed else _claim(folder, project, lambda new: new.symlink_to(path))
    except OSError as error:
        raise DataError(
            f"No run directory can be made at {error.filename or folder} ({error.strerror}); choose another output.dir "
            "or set COCKPIT_RUNS to a folder you may write to."
        ) from None
    run = RunDirectory(path)
    run.make()
    run.write_config(resolved_config)
    run.write_info(
        RunInfo(
            id=entry.name, project=project, kind=kind, engine=engine, title=title, label=label, created=time.time(),
            parent=parent, fork_step=fork_step, replay_of=replay_of,
        )
    )  # fmt: skip
    return run


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


def find_run(name: str) -> RunDirectory:
    """The run that `name` means: a path, an id, a unique prefix, or `last`. Raises `UserError`."""
    if not name:
        raise UserError("RUN is empty: give an id, a unique prefix, a path, or `last`.")
    path = Path(name)
    if os.path.isfile(path / "run.json"):
        return RunDirectory(path)
    runs = list_runs()
    if name == "last" and runs:
        return max(runs, key=_created)
    named = {run.path.name: run for run in runs}
    if name in named:
        return named[name]
    matches = [run_id for run_id in named if run_id.startswith(name)]
    if len(matches) == 1:
        return named[matches[0]]
    if matches:
        raise UserError(f"{name!r} could be {' or '.join(sorted(matches)[:4])}; give more of the id.")
    if os.path.lexists(runs_folder() / name):
        _ = RunDirectory(runs_folder() / name).info  # raises, saying why what is there cannot be meant
    raise UserError(
        f"No run is called {name!r} in {runs_folder()}{nearest(name, named)}; `cockpit ls` shows the runs there are."
    )


def find_training(name: str) -> RunDirectory:
    """As `find_run`, among trainings: `last` is the newest of them, whatever task came later. Raises `UserError`."""
    trainings = [run for run in list_runs() if _kind(run) == "training"] if name == "last" else []
    run = max(trainings, key=_created) if trainings else find_run(name)
    if (info := run.info).kind != "training":
        raise UserError(f"{info.id} is a {info.kind} ({info.title}); expected a training.")
    return run


def _kind(run: RunDirectory) -> Kind | None:
    try:
        return run.info.kind
    except DataError:
        return None
