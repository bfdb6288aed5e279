"""Whether two runs are the same training: `python -P -m engines.compare RUN_DIR OTHER_DIR` prints one JSON object.

Steps are compared one by one as logged, weights as last.pt holds them, bit for bit.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from engines.contract.errors import UserError
from engines.contract.rundir import RunDirectory
from engines.contract.steps import DATA_WAIT, read_segments, read_series
from engines.training import checkpoint

HOST_COLUMNS = ("step", "attempt", "time", DATA_WAIT)
"""What differs from run to run whatever they compute."""


def compare(one: RunDirectory, other: RunDirectory) -> dict[str, Any]:
    """The first step that differs with its columns, and the weights that do. Raises `UserError` without a checkpoint.

    Steps after the earlier checkpoint are not compared: a run that was killed has logged some that its weights do not
    know of. first_step: number of the step, from 0; null where all are equal. different: names of tensors.
    """
    ours, theirs = (checkpoint.load(run.last) for run in (one, other))
    steps, columns = first_difference(one, other, before=min(content["state"]["step"] for content in (ours, theirs)))
    weights = ours["model"], theirs["model"]
    names = sorted(weights[0].keys() | weights[1].keys())
    return {
        "first_step": steps,
        "columns": columns,
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
