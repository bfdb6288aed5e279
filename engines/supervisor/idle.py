"""Waits until a machine has had nothing to do for a while: no run, and nobody at a terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

POLL_SECONDS = 20.0
TERMINALS = Path("/dev/pts")
ENDS_IT = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)


def wait_until_idle(seconds: float, other_work: Callable[[], str], heard: Sequence[int]) -> str:
    """Wait for `seconds` without a key pressed; why that did not come, empty where it did.

    `other_work` names a run that works here. `heard` are signals that are blocked; one to end it ends the wait.
    """
    began = time.monotonic()
    while True:
        if other := other_work():
            return f"{other} runs on this machine"
        quiet = min(time.monotonic() - began, max(0.0, time.time() - last_input()))
        if quiet >= seconds:
            return ""
        answer = signal.sigtimedwait(heard, min(POLL_SECONDS, seconds - quiet))
        if answer is not None and answer.si_signo in ENDS_IT:
            return "the wait was ended by a signal"


def last_input(terminals: Path = TERMINALS) -> float:
    """When something was last typed at a terminal of this user, in Unix time; 0 for never.

    The kernel notes it, to eight seconds, as the time at which the terminal was read.
    """
    newest = 0.0
    with contextlib.suppress(OSError):
        for entry in os.scandir(terminals):
            with contextlib.suppress(OSError):
                status = entry.stat()
                if entry.name.isdecimal() and status.st_uid == os.getuid():
                    newest = max(newest, status.st_atime)
    return newest
