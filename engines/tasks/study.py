"""A study: runs of one config that differ in a few settings, over several seeds, and one table of them.

Each run lies in FOLDER/ROW/seed_N, one after another. Started again it skips the runs that are over and resumes the one
that was stopped; Ctrl-C stops a run after its step. FOLDER/study.md is written after every run. Of a demo's config the
data is made first where there is none.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from engines.basics.errors import UserError
from engines.basics.files import replace_bytes
from engines.contract import commands
from engines.contract import spec as specs
from engines.contract.config import load_config, with_recorded_environment
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.demo_data import is_ready, making_run
from engines.runs.state import RunReader

Outcome = TypeVar("Outcome")
Train = Callable[[Path, RunDirectory, Sequence[str]], None]
Rows = Mapping[str, tuple[str, tuple[str, ...]]]
"""By name: what a row is called, and the settings that make it."""
SECTIONS = {"data", "model", "training", "loss_weights", "objective", "rollouts", "imagination", "played", "rates"}
"""What must be the same in a run that is there already."""
MOST_SEEDS = 10
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Student's t of 95 % intervals, by degrees of freedom from 1 on."""
POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Study(Generic[Outcome]):
    """What is trained, and what is said of it.

    is_over: whether a run needs no more training. outcome: what one that is over has come to. table: of those that
    are over, by row and seed.
    """

    rows: Rows
    is_over: Callable[[RunDirectory], object]
    outcome: Callable[[RunDirectory], Outcome]
    table: Callable[[Mapping[str, Mapping[int, Outcome]]], str]

    def run(
        self,
        config: Path,
        folder: Path,
        rows: Sequence[str],
        seeds: int,
        overrides: Sequence[str],
        train: Train | None = None,
    ) -> str:
        """Train what is missing and give the table. Raises `UserError` for bad settings before any run is made."""
        wanted = [
            (row, seed, [*overrides, *self.rows[row][1], f"training.seed={seed}"])
            for row in rows
            for seed in range(1, seeds + 1)
        ]
        for row, seed, settings in wanted:
            _check(config, RunDirectory(folder / row / f"seed_{seed}"), settings)
        _make_demo_data(config, overrides)
        found: dict[str, dict[int, Outcome]] = {row: {} for row in rows}
        for row, seed, settings in wanted:
            run = RunDirectory(folder / row / f"seed_{seed}")
            if not self.is_over(run):
                print(f"{self.rows[row][0]}, seed {seed}: {run.path}", flush=True)
                (train or self._train)(config, run, settings)
            found[row][seed] = self.outcome(run)
            replace_bytes(folder / "study.md", self.table(found).encode())
        return self.table(found)

    def _train(self, config: Path, run: RunDirectory, settings: Sequence[str]) -> None:
        """Start or resume a run and stay until it has ended. Raises `UserError` where it has not come to its end."""
        reader = RunReader(run)
        if not run.path.is_dir():
            launch.start(launch.prepare_training(config, settings, run_dir=run.path))
        elif not reader.status().live:
            launch.start(run, launch.prepare_resume(run)[0])
        _attend(run)
        if not self.is_over(run):
            raise UserError(
                f"{run.path}: {reader.status().detail or 'has no report'}; start the study again to resume."
            )

    def main(self, prog: str, description: str, seeds: int, arguments: Sequence[str] | None = None) -> int:
        """The command: 0, or the code of the error that it says. seeds: how many where none are asked for."""
        parser = argparse.ArgumentParser(prog=f"python -m {prog}", description=description)
        parser.add_argument("config", type=Path)
        parser.add_argument("folder", type=Path, help="where the runs and study.md lie, or will")
        names = ", ".join(self.rows)
        parser.add_argument("--rows", default=",".join(self.rows), help=f"of {names}; all where absent")
        parser.add_argument(
            "--seeds", type=int, default=seeds, choices=range(1, MOST_SEEDS + 1), metavar="N", help=str(seeds)
        )
        parser.add_argument("--set", action="append", default=[], metavar="a.b=c", help="override a config value")
        given = parser.parse_args(arguments)
        rows = given.rows.split(",")
        if unknown := [row for row in rows if row not in self.rows]:
            parser.error(f"there is no row {unknown[0]!r}, expected some of {names}")
        try:
            print(self.run(given.config, given.folder.expanduser(), rows, given.seeds, given.set), end="")
        except UserError as error:
            with contextlib.suppress(OSError):
                print(error, file=sys.stderr)
            return error.exit_code
        return 0


def _check(config: Path, run: RunDirectory, settings: Sequence[str]) -> None:
    """Raises `UserError` for settings that cannot be, or that are not those of the run that is there."""
    loaded = with_recorded_environment(load_config(config, settings))
    wanted = loaded.settings.model_dump(include=SECTIONS)
    if run.config.is_file() and load_config(run.config).settings.model_dump(include=SECTIONS) != wanted:
        raise UserError(f"{run.path}: was trained with other settings; name another folder, or remove this run.")


def _make_demo_data(config: Path, overrides: Sequence[str]) -> None:
    """What `cockpit demo` makes before it trains. Raises `UserError` where that does not come to its end."""
    settings = load_config(config, overrides).settings
    path = Path(settings.data.path).expanduser().absolute()
    if config.name != specs.find(settings.project).demo or (run := making_run(settings.project, path)) is None:
        return
    print(f"demo data: {path}", flush=True)
    _attend(run)
    if not is_ready(path):
        raise UserError(f"{run.path}: {RunReader(run).status().detail or 'stopped'}; start the study again to resume.")


def _attend(run: RunDirectory) -> None:
    """Stay until a run has ended; Ctrl-C stops it after its step. Raises `UserError` for that."""
    reader = RunReader(run)
    try:
        while reader.status().live:
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        launch.send_stop(run, commands.Stop(attempt=max(run.attempt_numbers())))
        said = f"{run.path}: stops after this step; start the study again to resume."
        raise UserError(said, exit_code=130) from None


def interval(differences: Sequence[float]) -> str:
    """Mean and 95 % interval of paired differences (t); the mean alone of one."""
    mean = statistics.fmean(differences)
    if len(differences) < 2:
        return f"{mean:+.3f}"
    half = T95[len(differences) - 2] * statistics.stdev(differences) / len(differences) ** 0.5
    return f"{mean:+.3f} ± {half:.3f}"


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, the first line its head."""
    head, *rest = lines
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *rest))
