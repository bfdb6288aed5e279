"""The run directory: where everything of a run lives, and the two small records that say what it is.

The truth about a run is this directory, never the memory of a process.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec

from engines.basics import files
from engines.basics.errors import DataError
from engines.basics.reading import read_json

Kind = Literal["training", "task"]
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
TrainLoss = Literal["pooled", "steps"]
"""What `train.loss` of an epoch is: Σ weight × the means of the heads, pooled over the elements of the epoch, with the
weights in force at its end, as in the validation loss; or the mean of the losses of its steps."""


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
    """The user's label for the run."""
    notes: str = ""
    """The user's notes on it."""
    tags: list[str] = []
    """The user's own words to find it by, each without spaces."""
    parent: str | None = None
    fork_step: int | None = None
    fork_best: bool | None = None
    """Whether a fork began with its parent's best checkpoint as what there is to beat; None before it has begun."""
    replay_of: str | None = None
    """The run that this one does once more."""
    train_loss: TrainLoss = "steps"
    """Runs that do not say it are of a version that had no other."""
    edition: int = 1
    """Which of its project's definitions it has (`Spec.edition`); its resumes and replays keep them."""
    created: float = 0.0
    made_by: str = ""
    """`user@host`, to be read by the user."""
    seal: str = ""
    """By which its user knows it as their own (`engines.host.identity`); empty in a run that came out of a bundle."""

    @property
    def foreign(self) -> str:
        """Why the cockpit knows nothing of it but what it logged, in words; empty for a run of an engine."""
        return "" if self.engine else f"{self.id} is a run of an external program"

    @property
    def only_stops(self) -> bool:
        """Nothing but a stop can be asked of it while it lives."""
        return self.kind == "task" or bool(self.foreign)

    @property
    def why_no_resume(self) -> str:
        """Why nobody can go on with it, however it ended; empty where that depends on its end."""
        if self.kind != "training":
            return f"{self.id} is a {self.kind}, and only trainings can be resumed; start it again instead."
        if self.foreign:
            return f"{self.foreign}, and only that program can resume it."
        if self.replay_of is not None:
            return (
                f"{self.id} is a replay and cannot be resumed; start it again with `cockpit replay {self.replay_of}`."
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
    rank_loads = _below("metrics", "ranks.json")
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
                f"The run directory {self.path} cannot be created ({error.strerror}); choose another output.dir "
                "or set COCKPIT_RUNS to a folder you can write to."
            ) from None

    def refuse_links(self) -> None:
        """Raises `DataError` where something that a run writes is a link: it would be written elsewhere."""
        folders = (self.attempts, self.steps.parent, self.steps, self.system, self.checkpoints, self.stdout.parent)
        written = (self.lock, self.events, self.commands, self.train_metrics, self.val_metrics, self.stdout)
        for path in (*folders, self.review, self.export, *written, self.supervisor_log):
            if path.is_symlink():
                raise DataError(
                    f"{path} is a link, and a run writes into its own directory; put what it leads to there."
                )

    def rank_log(self, rank: int) -> Path:
        """What a rank prints; rank 0 into the log of the run."""
        return self.stdout.with_name(f"rank_{rank}.log") if rank else self.stdout

    def stage_best(self, number: int) -> Path:
        """The best checkpoint of a stage that is over, by its number from 1; of a run with several stages."""
        return self.checkpoints / f"stage_{number}_best.pt"

    def stage_bests(self) -> dict[int, Path]:
        """The best checkpoints of stages that are there, by number."""
        found = (path.stem.split("_") for path in self.checkpoints.glob("stage_*_best.pt"))
        numbers = sorted(int(parts[1]) for parts in found if parts[1].isdecimal())
        return {number: self.stage_best(number) for number in numbers}

    def stage_review(self, number: int) -> Path:
        """The review arrays of that checkpoint."""
        return self.review / f"stage_{number}"

    def at_stage(self, number: int) -> RunDirectory:
        """The same run with the `best`, the `review` and the `export` of a stage that is over."""
        run = RunDirectory(self.path)
        run.best, run.review = self.stage_best(number), self.stage_review(number)
        run.export = self.export / f"stage_{number}"
        return run

    @property
    def info(self) -> RunInfo:
        try:
            return read_json(self.info_file, RunInfo)
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
        return sorted(int(file.stem) for file in self.attempts.glob("*.json") if _NUMBER.fullmatch(file.stem))

    def attempt(self, number: int) -> Attempt:
        path = self.attempts / f"{number}.json"
        try:
            attempt = read_json(path, Attempt)
        except (msgspec.DecodeError, OSError) as error:
            raise DataError(f"{path} cannot be read ({error}).") from None
        if attempt.number != number:
            raise DataError(f"{path} cannot be read (it says that it is attempt {attempt.number}).")
        return attempt

    def newest_attempt(self) -> Attempt | None:
        numbers = self.attempt_numbers()
        return self.attempt(numbers[-1]) if numbers else None

    def asked_to_die(self, number: int) -> Path:
        """Of an attempt that reports itself: written before a person's signal goes out, with how it ends by that."""
        return self.attempts / f"{number}.signal"

    def provenance(self, number: int) -> Path:
        """What an attempt was made with, as its engine recorded it."""
        return self.attempts / f"{number}.provenance.json"

    def write_attempt(self, attempt: Attempt) -> None:
        files.replace_bytes(self.attempts / f"{attempt.number}.json", msgspec.json.format(msgspec.json.encode(attempt)))
