"""Ranks of a run as forked processes: what torchrun starts, without its start-up, and meeting on a free port."""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping

import numpy as np
import torch
import torch._dynamo  # what an optimizer's first step imports: once here, not in each fork

from engines.contract.config import load_config
from engines.contract.events import Ended
from engines.contract.rundir import RunDirectory
from engines.contract.steps import FIXED, read_segments
from engines.runtime.attempt import Attempt, carry_out
from engines.runtime.following import MARK, follow
from engines.supervisor.processes import die_with_parent
from engines.training import engine

Work = Callable[[Attempt], Ended]


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def loop_alone(attempt: Attempt) -> Ended:
    """A training without the report and the export at its end."""
    trainer = engine.load(attempt.run, load_config(attempt.run.config), attempt.events, attempt.listener)
    engine.resume(attempt.run, trainer)
    return Ended(reason=trainer.train(), step=trainer.state.step)


def start_ranks(run: RunDirectory, count: int, attempt: int = 1, work: Work = engine.train) -> list[int]:
    """The process ids of `count` ranks of `run`."""
    shared = {
        "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()), MARK: str(run.path),
    }  # fmt: skip
    return [_fork(run, attempt, rank, shared if count > 1 else {}, work) for rank in range(count)]


def _fork(run: RunDirectory, attempt: int, rank: int, shared: Mapping[str, str], work: Work) -> int:
    parent = os.getpid()
    if pid := os.fork():
        return pid
    die_with_parent(parent)()
    code = 70
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.environ.update(shared, RANK=str(rank), LOCAL_RANK=str(rank))
        sys.stdout, sys.stderr = (open(one, "w", closefd=False, buffering=1) for one in (1, 2))  # noqa: SIM115
        torch.set_num_threads(1)
        if rank == 0:
            log = os.open(run.stdout, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.dup2(log, 1)
            os.dup2(log, 2)
        code = follow(run, attempt, rank, work) if rank else carry_out(run, attempt, work)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait_ranks(pids: list[int]) -> list[int]:
    """Their exit codes, negative for a signal."""
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def trained(run: RunDirectory, count: int, attempt: int = 1, work: Work = engine.train) -> list[int]:
    """Train with so many ranks to the end; their exit codes."""
    return wait_ranks(start_ranks(run, count, attempt, work))


def logged(run: RunDirectory, attempt: int | None = None) -> dict[str, np.ndarray]:
    """Every column of the steps by name, in the order of the steps."""
    columns, records = read_segments(run.steps)[-1]
    if attempt is not None:
        records = records[records[:, FIXED.index("attempt")] == attempt]
    return {name: np.array(records[:, place]) for place, name in enumerate(columns)}
