"""What is each part of the melee model worth? One of them left out a row, over several seeds, and a table of them.

    python -m projects.melee.study CONFIG FOLDER [--rows full,joint] [--seeds 2] [--set section.key=value …]

Where its runs lie and how it goes on: `engines.tasks.study`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engines.contract.rundir import RunDirectory
from engines.runs.state import RunReader
from engines.tasks.study import Rows, Study, markdown

ROWS: Rows = {
    "full": ("nothing", ()),
    "no_forcing": ("self-forcing", ("objective.self_forcing.begins=[]",)),
    "no_kinematic": ("the kinematic step: changes of place are predicted", ("model.kinematic=false",)),
    "no_stay": ("what is added to the present class", ("model.without=[stay]",)),
    "joint": ("a row per fighter: `model.view: joint`", ("model.view=joint",)),
    "no_reset": ("speeds that begin again", ("model.without=[reset]",)),
    "no_ground": ("the ground below", ("model.without=[ground]",)),
    "no_action": ("motion heads that see the action", ("model.without=[by_action]",)),
    "change_weight": ("nothing; `objective.change_weight: 5`", ("objective.change_weight=5",)),
    "mamba": (
        "nothing; Mamba-2 as in `melee_cpu.yaml`",
        ("model.architecture=mamba", "model.d_model=192", "model.n_layers=2", "data.K=16", "training.batch_size=32"),
    ),
}
"""By name: what is left out, and the settings that do it."""
EARLY, LATE = ("1", "5", "10", "20"), "60"
VELOCITY, STILL, RUN = "constant velocity", "persistence", "this run"


@dataclass(frozen=True)
class Outcome:
    """One run at its best epoch: position errors as shares of a baseline's, and shares of right actions."""

    position: tuple[float, ...]
    """Of constant velocity's at `EARLY`, then of persistence's at `LATE`."""
    action: tuple[float, ...]


def is_over(run: RunDirectory) -> bool:
    """Whether it came to its end, and so has its report."""
    return run.path.is_dir() and RunReader(run).status().state in ("finished", "early-stopped")


def outcome(run: RunDirectory) -> Outcome:
    """What a run that is over has come to."""
    tables = json.loads(run.report.read_bytes())["tables"]

    def values(name: str) -> dict[str, dict[str, float]]:
        columns = tables[name]["columns"]
        return {row[0]: dict(zip(columns, row, strict=True)) for row in tables[name]["rows"]}

    place, action = values("Position"), values("Action")[RUN]
    early = [place[RUN][h] / place[VELOCITY][h] for h in EARLY]
    return Outcome((*early, place[RUN][LATE] / place[STILL][LATE]), tuple(action[h] for h in EARLY))


def table(found: Mapping[str, Mapping[int, Outcome]]) -> str:
    """The study in Markdown: the mean of the seeds, and half of what lies between the highest and the lowest."""
    at = " / ".join(EARLY)
    head = ["left out", "seeds", f"position of constant velocity {at}", f"of persistence {LATE}", f"action {at}"]
    lines = [head]
    for row, outcomes in found.items():
        if outcomes:
            positions = _spread([one.position for one in outcomes.values()])
            actions = _spread([one.action for one in outcomes.values()])
            cells = (" / ".join(positions[:-1]), positions[-1], " / ".join(actions))
            lines.append([ROWS[row][0], str(len(outcomes)), *cells])
    return markdown(lines)


def _spread(runs: Sequence[tuple[float, ...]]) -> list[str]:
    return [
        f"{_short(sum(seeds) / len(seeds))} ± {_short((max(seeds) - min(seeds)) / 2)}"
        for seeds in zip(*runs, strict=True)
    ]


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


STUDY = Study(ROWS, is_over, outcome, table)


if __name__ == "__main__":
    sys.exit(STUDY.main("projects.melee.study", "What is each part of the melee model worth?", 2))
