"""What does the frozen language model add? Every row of the study, over several seeds, and a table of them.

    python -m projects.sim.study CONFIG FOLDER [--rows none,llm_2] [--seeds 5] [--set section.key=value …]

Where its runs lie and how it goes on: `engines.tasks.study`.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from engines.contract.rundir import RunDirectory
from engines.tasks.study import Study, interval, markdown

ROWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "none": ("no LLM", ("model.llm=none",)),
    **{
        f"random_{layers}": (
            f"random weights, {layers} layers",
            ("model.random_weights=true", f"model.llm_layers={layers}"),
        )
        for layers in (2, 6)
    },
    **{f"llm_{layers}": (f"the LLM, {layers} layers", (f"model.llm_layers={layers}",)) for layers in (2, 6, 12, 30)},
}
"""By name: what a row is called, and the settings that make it. All train the same number of parameters."""
AGAINST = ("none", "random_2", "random_6")
"""What the others are compared with, seed by seed."""
SCORES = ("risk F1", "action F1")


@dataclass(frozen=True)
class Outcome:
    """One run: its scores and those of its baselines by name, milliseconds of a batch, minutes of training."""

    scores: dict[str, dict[str, float | None]]
    ms: float
    minutes: float


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
    predictors = takewhile(lambda row: not row[0].startswith("skill over "), tables["baselines"]["rows"])
    rows = [dict(zip(columns, row, strict=True)) for row in predictors]
    speed = dict(zip(tables["speed"]["columns"], tables["speed"]["rows"][-1], strict=True))
    epochs = [json.loads(line) for line in run.train_metrics.read_text().splitlines()]
    seconds = {epoch["epoch"]: epoch["seconds"] for epoch in epochs}  # one that was trained again counts once
    return Outcome({row[columns[0]]: row for row in rows}, speed["ms"], sum(seconds.values()) / 60)


def table(found: Mapping[str, Mapping[int, Outcome]]) -> str:
    """The study in Markdown: a line for each row and baseline that has been run."""
    against = [row for row in AGAINST if found.get(row)]
    differences = [f"{score} less {ROWS[row][0]}" for row in against for score in SCORES]
    lines = [["", "seeds", *SCORES, *differences, "ms", "minutes"]]
    first = next((one for outcomes in found.values() for one in outcomes.values()), None)
    for name, scores in first.scores.items() if first is not None else ():
        if name != "this run":
            lines.append([name, "", *(_number(scores[score]) for score in SCORES), *[""] * (len(differences) + 2)])
    references = [(row, found[row]) for row in against]
    lines += [_line(row, outcomes, references) for row, outcomes in found.items() if outcomes]
    return markdown(lines)


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


STUDY = Study(ROWS, _final, outcome, table)
study = STUDY.run


def main(arguments: Sequence[str] | None = None) -> int:
    """What the command does: 0, or the code of the error that it says."""
    return STUDY.main("projects.sim.study", "What does the frozen LLM add?", 5, arguments)


if __name__ == "__main__":
    sys.exit(main())
