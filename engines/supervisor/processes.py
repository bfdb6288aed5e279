"""What the supervisor needs of the operating system: orphans adopted, death with the parent, signs of an OOM kill."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from engines.contract.rundir import ProcessMark

ENVIRONMENT = {
    "PYTHONUNBUFFERED": "1",
    # Threads that wait give their core away instead of spinning: with one of two cores busy elsewhere, 17 steps a
    # second of the controls demo against 0.7; on idle cores 26 against 25 to 32.
    "OMP_WAIT_POLICY": "passive",
}
"""What an engine's environment has unless the user's own says otherwise."""
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Make orphaned descendants our children, so that none can escape."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> Callable[[], None]:
    """A function to run in a new child: it gets `number` when `parent` dies, and starts with no signal blocked.

    The kernel takes the thread that started the child for its parent.
    """

    def in_child() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # it died between the fork and the line above
            os._exit(1)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    return in_child


def rank_zero(engine: int) -> int:
    """Of an engine with several ranks the process of the first one, which hears signals; else the engine itself."""
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(engine).children():
            with contextlib.suppress(psutil.Error):
                if child.environ().get("RANK") == "0":
                    return child.pid
    return engine


def mark(pid: int) -> ProcessMark:
    return ProcessMark(pid, psutil.Process(pid).create_time())


def oom_kills() -> int:
    """Kills the kernel has made for lack of memory: in our control group, else on the whole machine."""
    candidates = [Path("/proc/vmstat")]
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                candidates.insert(0, Path(f"/sys/fs/cgroup{path}/memory.events"))
            elif "memory" in controllers.split(","):
                candidates.insert(0, Path(f"/sys/fs/cgroup/memory{path}/memory.oom_control"))
    for file in candidates:
        with contextlib.suppress(OSError):
            for line in file.read_text().splitlines():
                key, _, value = line.partition(" ")
                if key == "oom_kill":
                    return int(value)
    return 0


def reap() -> dict[int, int]:
    """Wait status of every child that has ended, by process id; adopted orphans too."""
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended[pid] = status
    return ended


def end_descendants(grace: float) -> None:
    """End whatever still descends from this process: SIGTERM, after `grace` seconds SIGKILL, until nothing is left."""
    deadline = time.monotonic() + grace
    asked: set[int] = set()
    while True:
        reap()
        left = psutil.Process().children(recursive=True)
        if not left:
            return
        late = time.monotonic() > deadline
        for process in left:
            if late or process.pid not in asked:
                asked.add(process.pid)
                with contextlib.suppress(psutil.Error):
                    process.send_signal(signal.SIGKILL if late else signal.SIGTERM)
        time.sleep(0.02)
