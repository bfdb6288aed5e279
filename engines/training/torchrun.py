"""The ranks of a run on this machine, under torchrun: what a supervisor starts where `launch` asks for several.

    python -P -m engines.training.torchrun --run-dir DIR --attempt N
    python -P -m engines.training.torchrun --run-dir DIR --node K      on each further machine, K = 1, 2 …

The second form joins every attempt of the run until it has ended; all machines see the run's directory and the data at
the same paths. What a rank beside the first prints is in `logs/rank_N.log`.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from engines.basics.errors import DataError, UserError
from engines.basics.jsonl import last_lines
from engines.contract.config import load_config
from engines.contract.events import Ended, EventWriter
from engines.contract.rundir import Attempt, RunDirectory
from engines.contract.settings import Launch
from engines.runtime.following import LOST, MARK
from engines.supervisor import processes

MEET_SECONDS = 900
"""Until all machines have come."""
POLL_SECONDS = 0.5
AGAIN_SECONDS = 60.0
"""How long a further machine waits for a failed run to be started again."""
SHOWN_LINES = 20


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -P -m engines.training.torchrun", description="The ranks of a run.")
    parser.add_argument("--run-dir", type=Path, required=True, help="directory of the run")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--attempt", type=int, help=argparse.SUPPRESS)  # given by the supervisor alone
    group.add_argument("--node", type=int, help="number of this machine, from 1; the run was started on machine 0")
    return parser.parse_args()


def carry_out(run: RunDirectory, attempt: int, node: int) -> int:
    """Start this machine's ranks, wait for them, and give the exit code of the run, negative for a signal.

    Raises `UserError`.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    launch = load_config(run.config).settings.launch
    os.environ[MARK] = str(run.path)
    kills = processes.oom_kills()
    engine = ["-P", "-m", run.info.engine, "--run-dir", str(run.path), "--attempt", str(attempt)]
    several = launch.nodes > 1
    with tempfile.TemporaryDirectory(prefix="cockpit-ranks-") as folder:
        config = LaunchConfig(
            min_nodes=launch.nodes, max_nodes=launch.nodes, nproc_per_node=ranks_here(launch),
            run_id=f"{run.path.name}-{attempt}", rdzv_backend="static" if several else "c10d",
            rdzv_endpoint=launch.rendezvous if several else "127.0.0.1:0",
            rdzv_configs={"rank": node, "timeout": MEET_SECONDS}, local_addr=None if several else "127.0.0.1",
            max_restarts=0, monitor_interval=0.1, logs_specs=DefaultLogsSpecs(log_dir=folder),
        )  # fmt: skip
        try:
            elastic_launch(config, sys.executable)(*engine)
        except ChildFailedError as error:
            codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
            return _failed(run, attempt, codes, oom=processes.oom_kills() > kills)
        except SignalException as stop:
            return -int(stop.sigval)
    return 0


def ranks_here(launch: Launch) -> int:
    """How many ranks each machine has."""
    if launch.devices != "auto":
        return launch.devices
    import torch

    return 1 if launch.device == "cpu" else max(1, torch.cuda.device_count())


def _failed(run: RunDirectory, attempt: int, codes: Mapping[int, int], *, oom: bool) -> int:
    """The exit code of the run, after `codes` of ranks that ended first; says which rank it was, unless rank 0 has.

    A rank that only lost another one, or that torchrun ended for that, is not to blame, unless no other is known: then
    that was on another machine.
    """
    guilty = {rank: code for rank, code in codes.items() if code not in (LOST, -signal.SIGTERM)} or dict(codes)
    rank = min(guilty, key=lambda one: (guilty[one] >= 0, one))  # a signal comes before what follows from it
    code = guilty[rank]
    if rank == 0 and (code == -signal.SIGTERM or (code >= 0 and code != LOST)):  # asked to stop before it heard that
        return code
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    if code == -signal.SIGKILL and oom:
        how += " (out of memory)"
    elif code == LOST:
        how = "lost a rank on another machine: see the logs there"
    log = run.rank_log(rank)
    lines = last_lines(log, SHOWN_LINES)
    print(f"rank {rank} {how}; {log.name} ends with:", *lines, sep="\n", flush=True)
    said = f": {lines[-1].strip()}" if lines and code > 0 else ""
    word = Ended(reason="failed", step=0, detail=f"rank {rank} {how}{said}")
    EventWriter(run.events, attempt).write(word, durable=True)
    return 1


def _live_attempt(run: RunDirectory, after: int) -> Attempt | None:
    """The newest attempt, if it is later than `after` and its engine was started."""
    try:
        newest = run.newest_attempt()
    except DataError:  # it is being written
        return None
    started = newest is not None and newest.number > after and newest.ended is None and newest.engine is not None
    return newest if started else None


def join_attempts(run: RunDirectory, node: int) -> int:
    """Be machine `node` in every attempt of the run, from the one that is live or comes next. Raises `UserError`."""
    done, code, until = 0, 0, float("inf")
    print(f"machine {node} waits for {run.path}", flush=True)
    while time.monotonic() < until:
        attempt = _live_attempt(run, done)
        if attempt is None:
            time.sleep(POLL_SECONDS)
            continue
        print(f"machine {node} joins attempt {attempt.number}", flush=True)
        code, done = carry_out(run, attempt.number, node), attempt.number
        again = load_config(run.config).settings.launch.restarts
        until = time.monotonic() + (AGAIN_SECONDS if code and again else 0.0)
    return code


def main() -> int:
    arguments = _arguments()
    run = RunDirectory(arguments.run_dir)
    try:
        code = join_attempts(run, arguments.node) if arguments.attempt is None else carry_out(run, arguments.attempt, 0)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
