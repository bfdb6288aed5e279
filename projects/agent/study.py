"""Does learning in dreams pay? One training over several seeds, and tables of what came of it.

    python -m projects.agent.study CONFIG FOLDER [--seeds 5] [--set section.key=value …]

Each run lies in FOLDER/seed_N, one after another; all see the same games and play the same episodes. Started again it
skips the runs that have their report and resumes the one that was stopped; Ctrl-C stops a run after its step.
FOLDER/study.md is written after every run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from engines.basics.errors import UserError
from engines.basics.files import replace_bytes
from engines.contract.rundir import RunDirectory
from engines.runs.studies import check, train
from projects.agent.baselines import CEILING, LINEAR, REPEAT
from projects.agent.report import OURS, PLAYERS
from projects.agent.scores import interval

SECTIONS = ("data", "model", "training", "loss_weights", "objective", "imagination", "played", "rates")
"""Of a config, that must be those of a run that is there."""
MOST_SEEDS = 20
CHANGES = "movement changes"
CLONED = "cloned, before it dreamed"
Train = Callable[[Path, RunDirectory, Sequence[str]], None]
Rows = dict[str, dict[str, Any]]


def study(config: Path, folder: Path, seeds: int, overrides: Sequence[str], instead: Train | None = None) -> str:
    """Train what is missing and give the tables. Raises `UserError` for bad settings before any run is made."""
    runs = {seed: RunDirectory(folder / f"seed_{seed}") for seed in range(1, seeds + 1)}
    settings = {seed: [*overrides, f"training.seed={seed}"] for seed in runs}
    for seed, run in runs.items():
        check(config, run, settings[seed], SECTIONS)
    found: dict[int, dict[str, Rows]] = {}
    for seed, run in runs.items():
        if not outcome(run):
            print(f"seed {seed}: {run.path}", flush=True)
            (instead or partial(train, final=outcome))(config, run, settings[seed])
        found[seed] = outcome(run)
        replace_bytes(folder / "study.md", tables(list(found.values())).encode())
    return tables(list(found.values()))


def outcome(run: RunDirectory) -> dict[str, Rows]:
    """The report's tables of a run that is over, by name and first column; {} before, or where nothing was played."""
    try:
        parts: dict[str, Any] = json.loads(run.report.read_bytes())["tables"]
        wanted = {name: parts[name] for name in ("Played", "Actions", "Rewards", "stages")}
    except (OSError, ValueError, KeyError):
        return {}
    found = {
        name: {str(row[0]): dict(zip(part["columns"][1:], row[1:], strict=True)) for row in part["rows"]}
        for name, part in wanted.items()
    }
    found["Actions"][CLONED] = {CHANGES: _cloned(run, list(found["stages"].values()))}
    return found


def _cloned(run: RunDirectory, stages: Sequence[Mapping[str, Any]]) -> float | None:
    """Movement on changes where the stage before the last was best: what cloning came to, before the dreams."""
    best = stages[-2]["best epoch"] if len(stages) > 1 else None
    evaluated = [json.loads(line) for line in run.val_metrics.read_text().splitlines()]
    return next((one["change_accuracy"] for one in reversed(evaluated) if one["epoch"] == best), None)


def tables(found: Sequence[Mapping[str, Rows]]) -> str:
    """Both tables of all seeds in Markdown; intervals are of the means of seeds, by Student's t."""
    return f"{played(found)}\n{predicted(found)}"


def played(found: Sequence[Mapping[str, Rows]]) -> str:
    """Returns, deaths and gold of an episode by player, and what the runs are better by, paired seed by seed."""
    lines = [("player", "return", *(f"{name} less it" for name in OURS), "deaths", "gold")]
    for name in PLAYERS:
        returns = _of(found, "Played", name, "return")
        gains = [
            _signed([mine - other for mine, other in zip(_of(found, "Played", ours, "return"), returns, strict=True)])
            if ours != name else ""
            for ours in OURS
        ]  # fmt: skip
        deaths, gold = (fmean(_of(found, "Played", name, key)) for key in ("deaths", "gold"))
        lines.append((name, f"{fmean(returns):.1f}", *gains, f"{deaths:.2f}", f"{gold:.0f}"))
    return _markdown(lines, f"{len(found)} seeds")


def predicted(found: Sequence[Mapping[str, Rows]]) -> str:
    """Movement on frames where it changes, and AUC of reward events by how far ahead they are, beside the others."""
    names = [CLONED, "this run", REPEAT, LINEAR, CEILING]
    ceiling = _of(found, "Actions", CEILING, CHANGES)
    lines = [("", "movement on changes", "share of the ceiling")]
    for name in names:
        right = _of(found, "Actions", name, CHANGES)
        shares = [one / most for one, most in zip(right, ceiling, strict=True)]
        lines.append((name, f"{fmean(right):.3f}", f"{min(shares):.2f} to {max(shares):.2f}"))
    sources = [column for column in found[0]["Rewards"]["0"] if column.startswith("AUC, ")]
    aucs = [("events, frames ahead", *(source.removeprefix("AUC, ") for source in sources))]
    aucs += [
        (offset, *(f"{fmean(_of(found, 'Rewards', offset, source)):.3f}" for source in sources))
        for offset in found[0]["Rewards"]
    ]
    return f"{_markdown(lines)}\n{_markdown(aucs)}"


def _of(found: Sequence[Mapping[str, Rows]], part: str, row: str, column: str) -> list[float]:
    """One number of each seed's report; NaN where there is none."""
    values = [one[part][row][column] for one in found]
    return [float("nan") if value is None else float(value) for value in values]


def _signed(differences: Sequence[float]) -> str:
    mean, half = interval(differences)
    return f"{mean:+.1f}" if len(differences) < 2 else f"{mean:+.1f} ± {half:.1f}"


def _markdown(lines: Sequence[Sequence[str]], corner: str = "") -> str:
    head, *rows = lines
    every = [[corner or head[0], *head[1:]], ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in every)


def main(arguments: Sequence[str] | None = None) -> int:
    """What the command does: 0, or the code of the error that it says."""
    parser = argparse.ArgumentParser(prog="python -m projects.agent.study", description="Does learning in dreams pay?")
    parser.add_argument("config", type=Path)
    parser.add_argument("folder", type=Path, help="where the runs and study.md lie, or will")
    parser.add_argument("--seeds", type=int, default=5, choices=range(1, MOST_SEEDS + 1), metavar="N", help="5")
    parser.add_argument("--set", action="append", default=[], metavar="a.b=c", help="override a config value")
    given = parser.parse_args(arguments)
    try:
        print(study(given.config, given.folder.expanduser(), given.seeds, given.set), end="")
    except UserError as error:
        with contextlib.suppress(OSError):
            print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
