"""What is left running of a run that has ended: its processes are those of its supervisor's session."""

from __future__ import annotations

import os
import time

import psutil

from cockpit.core.hosts.links import host_of
from cockpit.core.text import run_word
from engines.basics.lock import lock_holder
from engines.contract.rundir import ProcessMark, RunDirectory

LEAVING_SECONDS = 10.0
"""A supervisor records the end, then leaves: so long it is waited for."""
SAME_START = 1.0


def processes_of(supervisor: ProcessMark) -> list[int]:
    """Ids of the live processes in the session that `supervisor` leads or led.

    The kernel gives its id to no other process while the session lasts; a process with that id and another start
    belongs to someone else, and so does its session.
    """
    try:
        if abs(psutil.Process(supervisor.pid).create_time() - supervisor.started) > SAME_START:
            return []
    except psutil.NoSuchProcess:
        pass  # it has left; what it led may not have
    found = []
    for process in psutil.process_iter(["status"]):
        try:
            ours = os.getsid(process.pid) == supervisor.pid
        except (ProcessLookupError, PermissionError):
            continue
        if ours and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


def what_remains(run: RunDirectory) -> str:
    """A sentence, once the supervisor has left; for a worker. Raises OSError or `UserError` for a damaged record."""
    if host := host_of(run.path):
        return f"{run_word(run.path.name)} stopped on {host}."
    deadline = time.monotonic() + LEAVING_SECONDS
    while lock_holder(run.lock) is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    attempt = run.newest_attempt()
    if attempt is not None and attempt.reports_itself:  # whose processes lie in a session that may be anybody's
        return f"{run_word(run.path.name)} stopped."
    left = processes_of(attempt.supervisor) if attempt else []
    if not left:
        return f"{run_word(run.path.name)} stopped; no processes left."
    ids = ", ".join(map(str, left))
    return f"{run.path.name} stopped, but its processes {ids} still run; `cockpit kill {run.path.name}` ends them."
