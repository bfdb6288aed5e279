"""Does learning in dreams pay? One training over several seeds, and tables of what came of it.

    python -m projects.agent.study CONFIG FOLDER [--seeds 5] [--set section.key=value …]

All seeds see the same games and play the same episodes (`engines.tasks.study`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from engines.contract.rundir import RunDirectory
from engines.tasks.study import Study, markdown
from projects.agent.baselines import CEILING, LINEAR, REPEAT
from projects.agent.report import OURS, PLAYERS
from projects.agent.scores import interval

ROWS = {"phases": ("three phases", ())}
CHANGES = "movement changes"
CLONED = "cloned, before it dreamed"
Rows = dict[str, dict[str, Any]]


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


def tables(found: Mapping[str, Mapping[int, Mapping[str, Rows]]]) -> str:
    """Both tables of all seeds in Markdown; intervals are of the means of seeds, by Student's t."""
    seeds = [seed for row in found.values() for seed in row.values()]
    return f"{played(seeds)}\n{predicted(seeds)}"


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
    return markdown([(f"{len(found)} seeds", *lines[0][1:]), *lines[1:]])


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
    return f"{markdown(lines)}\n{markdown(aucs)}"


def _of(found: Sequence[Mapping[str, Rows]], part: str, row: str, column: str) -> list[float]:
    """One number of each seed's report; NaN where there is none."""
    values = [one[part][row][column] for one in found]
    return [float("nan") if value is None else float(value) for value in values]


def _signed(differences: Sequence[float]) -> str:
    mean, half = interval(differences)
    return f"{mean:+.1f}" if len(differences) < 2 else f"{mean:+.1f} ± {half:.1f}"


STUDY = Study(ROWS, outcome, outcome, tables)


if __name__ == "__main__":
    sys.exit(STUDY.main("projects.agent.study", "Does learning in dreams pay?", seeds=5))
