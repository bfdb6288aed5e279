"""The engine of work other than training, under a supervisor: `python -P -m engines.task --run-dir DIR --attempt N`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from engines.basics import yaml12
from engines.basics.errors import UserError, nearest
from engines.contract import spec as specs
from engines.contract.events import Ended, Phase
from engines.contract.rundir import RunDirectory
from engines.runtime.attempt import Attempt, carry_out
from engines.runtime.own_log import let_full_disks_be
from engines.runtime.progress import Told
from engines.tasks import StopRequested


class EventContext:
    """An `InteractiveContext` that speaks through the run's events and log."""

    def __init__(self, attempt: Attempt) -> None:
        self.folder = attempt.run.path
        self._listener, self._told = attempt.listener, Told(attempt.events.write)

    def progress(self, done: int, total: int, unit: str) -> None:
        """Tell at most a few times a second, and always the last. Raises `StopRequested` after a stop."""
        self._told(done, total, unit)
        self.check()

    def check(self) -> None:
        """Raises `StopRequested` after a stop."""
        if self._listener.stop_requested:
            raise StopRequested

    def log(self, text: str) -> None:
        print(text, flush=True)


def work(attempt: Attempt) -> Ended:
    """Do the task that the run directory names."""
    order, _ = yaml12.read(attempt.run.config.read_text(encoding="utf-8"))
    spec = specs.find(order["project"])
    if order["task"] not in spec.tasks:
        raise UserError(f"{spec.name} has no task {order['task']!r}{nearest(order['task'], spec.tasks)}.")
    function = specs.load_function(spec.tasks[order["task"]])
    attempt.listener.close("a task knows no command but stop")
    attempt.events.write(Phase(phase="working"))
    try:
        function(order["arguments"], EventContext(attempt))
    except StopRequested:
        return Ended(reason="stopped", step=0, detail="stopped on request")
    return Ended(reason="finished", step=0)


def main() -> int:
    parser = argparse.ArgumentParser(prog="engines.task")
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--attempt", type=int, required=True)
    arguments = parser.parse_args()
    let_full_disks_be()
    return carry_out(RunDirectory(arguments.run_dir), arguments.attempt, work)


if __name__ == "__main__":
    sys.exit(main())
