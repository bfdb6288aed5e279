"""The machine of a run that is elsewhere: what its supervisor records every few seconds, as a reading of now."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

from cockpit.core.hosts.link import LARGEST_SIZE, Link
from cockpit.core.metrics.steps import StepFollower, Steps
from cockpit.core.times import clock
from engines.basics.amounts import size
from engines.contract.rundir import RunDirectory
from engines.host.machine import Gpu, Reading

RECENT_SECONDS = 30.0
"""They come every five; older than this one says when it was."""
_GPU = re.compile(r"gpu(\d{1,3})\.")


class TheirMachine:
    """A `Machine` that reads the records of `run`, and what the host of `link` said of its size."""

    def __init__(self, run: RunDirectory, link: Link) -> None:
        self._readings, self._link = StepFollower(run.system, everything=True), link
        self._one_at_a_time = threading.Lock()

    def read(self, folder: Path) -> Reading:
        """The newest record; zeros before the first."""
        with self._one_at_a_time:
            self._readings.poll()
            newest = self._readings.steps
        name, machine = self._link.host.name, self._link.machine
        numbers = sorted({int(found[1]) for column in newest.names if (found := _GPU.match(column))})
        gpus = tuple(_gpu(newest, number) for number in numbers)
        moment = _last(newest, "step")  # which is the time: a supervisor knows no steps
        note = "" if gpus else f"no GPU recorded on {name}"
        if moment is None:
            note = f"nothing recorded on {name} yet"
        elif time.time() - moment > RECENT_SECONDS:
            note = f"{name} at {clock(moment)}"
        return Reading(
            gpus, note, _last(newest, "cores_busy") or 0.0, machine.cores, int(_last(newest, "memory_used") or 0),
            machine.memory, int(_last(newest, "disk_free") or 0), machine.disk,
        )  # fmt: skip


def _gpu(newest: Steps, number: int) -> Gpu:
    """How large its memory is was not recorded."""
    used, watts, celsius = (_last(newest, f"gpu{number}.{what}") for what in ("memory_used", "watts", "celsius"))
    problem = "" if used is None else f"{size(int(used))} used"
    return Gpu(
        f"GPU {number}", _last(newest, f"gpu{number}.utilisation"), None if used is None else int(used), None, watts,
        None if celsius is None else int(celsius), problem,
    )  # fmt: skip


def _last(newest: Steps, column: str) -> float | None:
    """The newest value of a column; None where there is none, or one that no machine has."""
    if column not in newest.names or not newest.table.size:
        return None
    value = newest.last(column)
    return value if value is not None and abs(value) <= LARGEST_SIZE else None  # which is false for NaN
