"""Whether two runs are the same training: `python -P -m engines.compare RUN_DIR OTHER_DIR` prints one JSON object.

Steps and epochs are compared one by one as logged, weights as last.pt holds them, bit for bit.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from engines.basics.errors import UserError
from engines.contract.rundir import RunDirectory
from engines.contract.steps import DATA_WAIT, read_segments, read_series
from engines.runs.state import RunReader
from engines.training import checkpoint

Rows = dict[int, dict[str, Any]]
"""By epoch, the value of each column."""
HOST_COLUMNS = ("step", "attempt", "time", DATA_WAIT)
"""What differs from run to run whatever they compute."""
HOST_VALUE = "ms"
"""So does the validation value that a project calls this, the time of its model's answer."""


def compare(one: RunDirectory, other: RunDirectory) -> dict[str, Any]:
    """The first step and epoch that differ with their columns, and the weights that do.

    What comes after the earlier checkpoint is not compared: a run that was killed has logged more than its weights know
    of. first_step: number of the step, from 0; first_epoch: from 1; null where all are equal. different: names of
    tensors. Raises `UserError` without a checkpoint.
    """
    ours, theirs = (checkpoint.load(run.last) for run in (one, other))
    steps, columns = first_difference(one, other, before=min(content["state"]["step"] for content in (ours, theirs)))
    done = min(content["state"]["epoch"] for content in (ours, theirs))
    epoch, values = first_epoch(*(_rows(run, done) for run in (one, other)))
    weights = ours["model"], theirs["model"]
    names = sorted(weights[0].keys() | weights[1].keys())
    return {
        "first_step": steps,
        "columns": columns,
        "first_epoch": epoch,
        "values": values,
        "steps": [content["state"]["step"] for content in (ours, theirs)],
        "tensors": len(names),
        "different": [name for name in names if not checkpoint.same(*(one.get(name) for one in weights))],
    }


def first_difference(one: RunDirectory, other: RunDirectory, *, before: int) -> tuple[int | None, list[str]]:
    """The first step logged before `before` whose numbers differ, or that only one has, and the columns that do."""
    names = {name for run in (one, other) for columns, _ in read_segments(run.steps) for name in columns}
    first: dict[str, int] = {}
    for name in sorted(names - {*HOST_COLUMNS}):
        (steps, values), (other_steps, other_values) = (_logged(run, name, before) for run in (one, other))
        length = min(len(steps), len(other_steps))
        same = (steps[:length] == other_steps[:length]) & (
            values[:length].view(np.uint64) == other_values[:length].view(np.uint64)
        )
        if not same.all():
            first[name] = int(steps[np.argmin(same)])
        elif len(steps) != len(other_steps):
            first[name] = int((steps if len(steps) > length else other_steps)[length])
    if not first:
        return None, []
    step = min(first.values())
    return step, [name for name, at in first.items() if at == step]


def first_epoch(rows: Rows, others: Rows) -> tuple[int | None, list[str]]:
    """The first epoch whose row differs, or that only one has, and the columns that do."""
    for epoch in sorted(rows.keys() | others.keys()):
        one, other = rows.get(epoch, {}), others.get(epoch, {})
        if different := [name for name in one | other if one.get(name) != other.get(name)]:
            return epoch, different
    return None, []


def _rows(run: RunDirectory, done: int) -> Rows:
    """The table up to epoch `done`, without what differs from run to run."""
    reader = RunReader(run)
    reader.poll()
    return {
        row.epoch: {
            **{f"train.{key}": value for key, value in row.train.items()},
            **{f"validation.{key}": value for key, value in row.validation.items() if key != HOST_VALUE},
            **{name: getattr(row, name) for name in ("score", "best", "lr", "stage", "weights", "nonfinite")},
        }
        for row in reader.history.epochs.values()
        if row.epoch <= done
    }


def _logged(run: RunDirectory, name: str, before: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    steps, values = read_series(run.steps, name)
    early = steps < before
    return steps[early], values[early]


def main() -> int:
    try:
        found = compare(*(RunDirectory(Path(path)) for path in sys.argv[1:3]))
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(msgspec.json.encode(found).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
