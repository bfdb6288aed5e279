"""Train from the command line, or as the engine that a supervisor starts.

    python -m engines.train --config FILE [--run-dir DIR] [--set section.key=value …]

By hand it makes the run directory, puts the engine under its supervisor and stays in the foreground; the run outlives
it.
With `--run-dir DIR --attempt N` it is the engine itself.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from engines.basics.errors import UserError
from engines.contract.events import Ended
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runtime.attempt import Attempt, carry_out
from engines.runtime.following import follow, rank_of
from engines.runtime.own_log import let_full_disks_be


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m engines.train", description="Train from a config file.")
    parser.add_argument("--config", type=Path, help="config file to start a new run from")
    parser.add_argument("--run-dir", type=Path, help="directory of the run; a new one under the runs folder if absent")
    parser.add_argument("--set", action="append", default=[], metavar="a.b=c", help="override a config value")
    parser.add_argument("--attempt", type=int, help=argparse.SUPPRESS)  # given by the supervisor alone
    arguments = parser.parse_args()
    if arguments.attempt is None and arguments.config is None:
        parser.error("--config is needed to start a run (`cockpit resume` continues one)")
    return arguments


def _work(attempt: Attempt) -> Ended:
    from engines.training.engine import train  # takes seconds: torch is imported while commands are already heard

    return train(attempt)


def main() -> int:
    arguments = _arguments()
    if arguments.attempt is not None:
        let_full_disks_be()
        run = RunDirectory(arguments.run_dir)
        if rank := rank_of(run):
            return follow(run, arguments.attempt, rank, _work)
        return carry_out(run, arguments.attempt, _work)
    from engines.runtime.foreground import start_and_stay

    try:
        return start_and_stay(launch.prepare_training(arguments.config, arguments.set, run_dir=arguments.run_dir))
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
