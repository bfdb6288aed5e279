"""Ending with the terminal, also where no signal tells that it is gone."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading


def end_with_the_terminal() -> None:
    """From now on end this process when the terminal of its standard input is gone.

    A terminal tells with SIGHUP only those it controls. Without that, as under `setsid` or `nohup`, reading keys would
    find nothing, again and again, on a whole core. Nothing is lost by an end: every run goes on.
    """
    threading.Thread(target=_wait, args=(sys.stdin.fileno(),), name="hang-up", daemon=True).start()


def _wait(terminal: int) -> None:
    hang_up = select.poll()
    hang_up.register(terminal, 0)  # it is told without being asked for
    hang_up.poll()
    os._exit(128 + signal.SIGHUP)  # the main thread may wait for a write that will never be
