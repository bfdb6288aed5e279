"""The engine of work other than training, under a supervisor: `python -P -m engines.task --run-dir DIR --attempt N`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from engines.basics import files, yaml12
from engines.basics.reading import read_text
from engines.contract import spec as specs
from engines.contract.events import Ended, Phase
from engines.contract.rundir import RunDirectory
from engines.contract.tables import Table, encode
from engines.runtime.attempt import Attempt, carry_out
from engines.runtime.own_log import let_full_disks_be
from engines.runtime.progress import ProgressEvents, StopRequested


class EventContext:
    """An `InteractiveContext` that speaks through the run's events and log."""

    def __init__(self, attempt: Attempt) -> None:
        self.folder = attempt.run.path
        self._report = attempt.run.report
        self._progress = ProgressEvents(attempt.events, attempt.listener)

    def progress(self, done: int, total: int, unit: str) -> None:
        """Tell at most a few times a second, and always the last. Raises `StopRequested` after a stop."""
        self._progress(done, total, unit)

    def check(self) -> None:
        """Raises `StopRequested` after a stop."""
        self._progress.check()

    def log(self, text: str) -> None:
        print(text, flush=True)

    def report(self, tables: Mapping[str, Table]) -> None:
        files.replace_bytes(self._report, encode(tables))


def work(attempt: Attempt) -> Ended:
    """Do the task that the run directory names."""
    order, _ = yaml12.read(read_text(attempt.run.config))
    spec = specs.find(order["project"])
    function = specs.load_function(spec.task(order["task"]).function)
    attempt.listener.close("a task supports no command but stop")
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
