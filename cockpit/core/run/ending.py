"""Ending a run harder than by a command: a signal to whoever holds it, on record where nobody else could write it down.

Doing so may wait for a disk: call it from a worker.
"""

from __future__ import annotations

import contextlib
import os
import signal

from engines.basics import files
from engines.basics.errors import DataError
from engines.basics.lock import lock_holder
from engines.contract.rundir import Attempt, RunDirectory

SAME_START = 2.0
"""Seconds by which the start of one process may differ between two readings: the clock may have been set."""
WORDS = {signal.SIGTERM: "ended by SIGTERM on request", signal.SIGQUIT: "killed on request"}


def send_signal(run: RunDirectory, number: signal.Signals) -> bool:
    """Send a signal to the process that holds the run's lock; False when nobody does (it has ended meanwhile).

    SIGQUIT is a supervisor's word for "kill it and all it has started"; a program that reports itself has no supervisor
    to do that, nor to write down how it ended: both is done here, the latter first, since nobody may be left to see it.
    Raises `DataError` for a run of another machine, OSError when it may not be sent.
    """
    holder = lock_holder(run.lock)
    if holder is None:
        return False
    if holder <= 0:  # the kernel tells no number across machines and process namespaces
        raise DataError(f"{run.path.name} runs on another machine or in another container; end it there.")
    attempt = _newest_attempt(run)
    if attempt is not None and not _is_recorded(attempt, holder):
        raise DataError(
            f"{run.path.name} is held by process {holder}, which is not the one that its record names; if it is yours "
            f"to end, use `kill {holder}`."
        )
    if attempt is not None and attempt.reports_itself:
        with contextlib.suppress(OSError):
            files.replace_bytes(run.asked_to_die(attempt.number), WORDS[number].encode())
        if number == signal.SIGQUIT:
            return _kill_with_descendants(holder)
    with contextlib.suppress(ProcessLookupError):
        os.kill(holder, number)
        return True
    return False


def _newest_attempt(run: RunDirectory) -> Attempt | None:
    """None also where its record is damaged, which must keep nobody from ending the run."""
    with contextlib.suppress(DataError):
        return run.newest_attempt()
    return None


def _is_recorded(attempt: Attempt, holder: int) -> bool:
    """Whether the process is the one of an attempt, by number and start; one that just ended is."""
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        started = psutil.Process(holder).create_time()
        return attempt.supervisor.pid == holder and abs(attempt.supervisor.started - started) < SAME_START
    return True


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
