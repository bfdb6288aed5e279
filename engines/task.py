"""The engine of work other than training, under a supervisor: `python -P -m engines.task --run-dir DIR --attempt N`."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from pathlib import Path

from engines.contract import spec as specs
from engines.contract import yaml12
from engines.contract.commands import Stop
from engines.contract.errors import UserError, nearest
from engines.contract.events import CommandAnswer, Ended, EventWriter, Phase, Progress
from engines.contract.rundir import RunDirectory
from engines.listener import CommandListener
from engines.tasks import StopRequested

PROGRESS_SECONDS = 0.25


class EventContext:
    """A `TaskContext` that speaks through the run's events and log."""

    def __init__(self, events: EventWriter, listener: CommandListener) -> None:
        self._events = events
        self._listener = listener
        self._told = 0.0

    def progress(self, done: int, total: int, unit: str) -> None:
        """Tell at most a few times a second, and always the last. Raises `StopRequested` after a stop."""
        if done >= total or time.monotonic() - self._told > PROGRESS_SECONDS:
            self._told = time.monotonic()
            self._events.write(Progress(done=done, total=total, unit=unit))
        if self._listener.stop_requested:
            raise StopRequested

    def log(self, text: str) -> None:
        print(text, flush=True)


def _answer_stops(events: EventWriter, listener: CommandListener) -> None:
    """A task knows one command, stop; everything else is refused at its end."""
    for command in listener.take_rest():
        stop = isinstance(command, Stop)
        reason = "" if stop else "this is a task, not a training"
        events.write(CommandAnswer(command=command, state="applied" if stop else "refused", step=0, reason=reason))


def work(run: RunDirectory, attempt: int) -> int:
    """Do the task that the run directory names and give the exit code."""
    events = EventWriter(run.events, attempt)
    with CommandListener(run, attempt, events, lambda: 0) as listener:
        events.write(Phase(phase="loading"))
        ended, code = Ended(reason="finished", step=0), 0
        try:
            order, _ = yaml12.read(run.config.read_text(encoding="utf-8"))
            spec = specs.find(order["project"])
            if order["task"] not in spec.tasks:
                raise UserError(f"{spec.name} has no task {order['task']!r}{nearest(order['task'], spec.tasks)}.")
            function = specs.load_function(spec.tasks[order["task"]])
            events.write(Phase(phase="working"))
            function(order["arguments"], EventContext(events, listener))
        except StopRequested:
            ended, code = Ended(reason="stopped", step=0, detail="stopped on request"), 3
        except UserError as error:
            print(error, file=sys.stderr)
            ended, code = Ended(reason="failed", step=0, detail=str(error)), error.exit_code
        except Exception as error:  # a fault of ours: the log gets the traceback, the person a sentence
            traceback.print_exc()
            ended, code = Ended(reason="failed", step=0, detail=f"{type(error).__name__}: {error}"), 1
        _answer_stops(events, listener)
    events.write(ended, durable=True)
    return code


def main() -> int:
    parser = argparse.ArgumentParser(prog="engines.task")
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--attempt", type=int, required=True)
    arguments = parser.parse_args()
    return work(RunDirectory(arguments.run_dir), arguments.attempt)


if __name__ == "__main__":
    sys.exit(main())
