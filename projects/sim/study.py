"""What does the frozen language model add? Every row of the study, over several seeds, and a table of them.

    python -m projects.sim.study CONFIG FOLDER [--rows none,llm_2] [--seeds 5] [--set section.key=value …]

Each run lies in FOLDER/ROW/seed_N, one after another, the cheap rows first. Started again it skips the runs that have
their report and resumes the one that was stopped; Ctrl-C stops a run after its step. FOLDER/study.md is written after
every run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from engines.basics.errors import UserError
from engines.basics.files import replace_bytes
from engines.contract.rundir import RunDirectory
from engines.runs.studies import check, train

ROWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "none": ("no LLM", ("model.llm=none",)),
    "random_2": ("random weights, 2 layers", ("model.random_weights=true", "model.llm_layers=2")),
    **{f"llm_{layers}": (f"the LLM, {layers} layers", (f"model.llm_layers={layers}",)) for layers in (2, 6, 12, 30)},
}
"""By name: what a row is called, and the settings that make it. All train the same number of parameters."""
AGAINST = ("none", "random_2")
"""What the others are compared with, seed by seed."""
SCORES = ("risk F1", "action F1")
MOST_SEEDS = 10
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Student's t of 95 % intervals, by degrees of freedom from 1 on."""
SECTIONS = ("data", "model", "training", "loss_weights")
"""Of a config, that must be those of a run that is there."""
Train = Callable[[Path, RunDirectory, Sequence[str]], None]


@dataclass(frozen=True)
class Outcome:
    """One run: its scores and those of its baselines by name, milliseconds of a batch, minutes of training."""

    scores: dict[str, dict[str, float | None]]
    ms: float
    minutes: float


def study(
    config: Path, folder: Path, rows: Sequence[str], seeds: int, overrides: Sequence[str], instead: Train | None = None
) -> str:
    """Train what is missing and give the table. Raises `UserError` for bad settings before any run is made."""
    wanted = [
        (row, seed, [*overrides, *ROWS[row][1], f"training.seed={seed}"])
        for row in rows
        for seed in range(1, seeds + 1)
    ]
    for row, seed, settings in wanted:
        check(config, RunDirectory(folder / row / f"seed_{seed}"), settings, SECTIONS)
    found: dict[str, dict[int, Outcome]] = {row: {} for row in rows}
    for row, seed, settings in wanted:
        run = RunDirectory(folder / row / f"seed_{seed}")
        if not _final(run):
            print(f"{ROWS[row][0]}, seed {seed}: {run.path}", flush=True)
            (instead or partial(train, final=_final))(config, run, settings)
        found[row][seed] = outcome(run)
        replace_bytes(folder / "study.md", table(found).encode())
    return table(found)


def _final(run: RunDirectory) -> dict[str, Any]:
    """The report of a run that is over; before its end it has none, or the tables of its best epoch."""
    try:
        tables: dict[str, Any] = json.loads(run.report.read_bytes())["tables"]
    except (OSError, ValueError, KeyError):
        return {}
    return tables if {"baselines", "speed"} <= set(tables) else {}


def outcome(run: RunDirectory) -> Outcome:
    """What a run that is over has come to."""
    tables = _final(run)
    columns = tables["baselines"]["columns"]
    rows = [dict(zip(columns, row, strict=True)) for row in tables["baselines"]["rows"]]
    speed = dict(zip(tables["speed"]["columns"], tables["speed"]["rows"][-1], strict=True))
    epochs = [json.loads(line) for line in run.train_metrics.read_text().splitlines()]
    seconds = {epoch["epoch"]: epoch["seconds"] for epoch in epochs}  # one that was trained again counts once
    return Outcome({row[columns[0]]: row for row in rows}, speed["ms"], sum(seconds.values()) / 60)


def interval(differences: Sequence[float]) -> str:
    """Mean and 95 % interval of paired differences (t); the mean alone of one."""
    mean = statistics.fmean(differences)
    if len(differences) < 2:
        return f"{mean:+.3f}"
    half = T95[len(differences) - 2] * statistics.stdev(differences) / len(differences) ** 0.5
    return f"{mean:+.3f} ± {half:.3f}"


def table(found: Mapping[str, Mapping[int, Outcome]]) -> str:
    """The study in Markdown: a line for each row and baseline that has been run."""
    against = [row for row in AGAINST if found.get(row)]
    differences = [f"{score} less {ROWS[row][0]}" for row in against for score in SCORES]
    head = ["", "seeds", *SCORES, *differences, "ms", "minutes"]
    lines = [head, ["---"] * len(head)]
    first = next((one for outcomes in found.values() for one in outcomes.values()), None)
    for name, scores in first.scores.items() if first is not None else ():
        if name != "this run" and not name.startswith("skill over "):
            lines.append([name, "", *(_number(scores[score]) for score in SCORES), *[""] * (len(differences) + 2)])
    references = [(row, found[row]) for row in against]
    lines += [_line(row, outcomes, references) for row, outcomes in found.items() if outcomes]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _line(row: str, outcomes: Mapping[int, Outcome], against: Sequence[tuple[str, Mapping[int, Outcome]]]) -> list[str]:
    cells = [ROWS[row][0], str(len(outcomes))]
    cells += [_number(_mean([one.scores["this run"][score] for one in outcomes.values()])) for score in SCORES]
    for name, others in against:
        for score in SCORES:
            pairs = [(outcomes[s].scores["this run"][score], others[s].scores["this run"][score])
                     for s in outcomes if s in others]  # fmt: skip
            known = [ours - theirs for ours, theirs in pairs if ours is not None and theirs is not None]
            cells.append(interval(known) if known and name != row else "")
    measured = list(outcomes.values())
    return [*cells, f"{statistics.fmean(one.ms for one in measured):.1f}",
            f"{statistics.fmean(one.minutes for one in measured):.1f}"]  # fmt: skip


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.3f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """What the command does: 0, or the code of the error that it says."""
    parser = argparse.ArgumentParser(prog="python -m projects.sim.study", description="What does the frozen LLM add?")
    parser.add_argument("config", type=Path)
    parser.add_argument("folder", type=Path, help="where the runs and study.md lie, or will")
    parser.add_argument("--rows", default=",".join(ROWS), help=f"of {', '.join(ROWS)}; all where absent")
    parser.add_argument("--seeds", type=int, default=5, choices=range(1, MOST_SEEDS + 1), metavar="N", help="5")
    parser.add_argument("--set", action="append", default=[], metavar="a.b=c", help="override a config value")
    given = parser.parse_args(arguments)
    rows = given.rows.split(",")
    if unknown := [row for row in rows if row not in ROWS]:
        parser.error(f"there is no row {unknown[0]!r}, expected some of {', '.join(ROWS)}")
    try:
        print(study(given.config, given.folder.expanduser(), rows, given.seeds, given.set), end="")
    except UserError as error:
        with contextlib.suppress(OSError):
            print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
