"""Ending a run harder than by a command: a signal to whoever holds it, and the end's record where nobody writes it.

Doing so may wait for a disk: call it from a worker.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from engines.contract.errors import DataError
from engines.contract.lock import lock_holder
from engines.contract.rundir import Attempt, End, RunDirectory

WORDS = {signal.SIGTERM: "ended by SIGTERM on request", signal.SIGQUIT: "killed on request"}


def send_signal(run: RunDirectory, number: signal.Signals) -> bool:
    """Send a signal to the process that holds the run's lock; False when nobody does (it has ended meanwhile).

    SIGQUIT is a supervisor's word for "kill it and all it has started"; a program that reports itself has no supervisor
    to do that, so it is done here. Raises `DataError` for a run of another machine, OSError when it may not be sent.
    """
    holder = lock_holder(run.lock)
    if holder is None:
        return False
    if holder <= 0:  # the kernel tells no number across machines and process namespaces
        raise DataError(f"{run.path.name} runs on another machine or in another container; end it there.")
    if number == signal.SIGQUIT and _reports_itself(run):
        return _kill_with_descendants(holder)
    with contextlib.suppress(ProcessLookupError):
        os.kill(holder, number)
        return True
    return False


def record_end(run: RunDirectory, attempt: int, number: signal.Signals) -> None:
    """After a signal: how a program that reports itself ended, unless it has said so. Raises OSError, `DataError`.

    It was its own supervisor, so that nobody is left to write it down, and it would pass for lost.
    """
    record = run.attempt(attempt)
    if record.ended is None and record.reports_itself and lock_holder(run.lock) is None:
        record.ended = End(reason="stopped", time=time.time(), signal=number.name, error=WORDS[number])
        run.write_attempt(record)


def newest_attempt(run: RunDirectory) -> Attempt | None:
    """None also where its record is damaged, which must keep nobody from ending the run."""
    with contextlib.suppress(DataError):
        return run.newest_attempt()
    return None


def _reports_itself(run: RunDirectory) -> bool:
    attempt = newest_attempt(run)
    return attempt is not None and attempt.reports_itself


def _kill_with_descendants(pid: int) -> bool:
    import psutil

    try:
        program = psutil.Process(pid)
        family = [program, *program.children(recursive=True)]
    except psutil.NoSuchProcess:
        return False
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return True
