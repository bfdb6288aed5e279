"""Staying with a run in the foreground: its log on stdout, Ctrl-C turned into a stop."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from types import FrameType

from engines.contract import commands as cmd
from engines.contract import launch
from engines.contract.rundir import RunDirectory

POLL_SECONDS = 0.1
INTERRUPTED = 130


def stay_with(run: RunDirectory, attempt: int, log_start: int) -> int:
    """Copy the engine's log to stdout until the attempt has ended; its exit code, 130 after Ctrl-C.

    The first Ctrl-C asks the engine to save and stop; a second one leaves it running.
    """
    interrupts = 0

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupts
        interrupts += 1

    previous = signal.signal(signal.SIGINT, on_interrupt)
    asked = False
    position = log_start
    try:
        while True:
            ended = run.attempt(attempt).ended
            with contextlib.suppress(FileNotFoundError), open(run.stdout, "rb") as log:
                log.seek(position)
                text = log.read()
                position += len(text)
                sys.stdout.write(text.decode("utf-8", "replace"))
                sys.stdout.flush()
            if ended is not None:
                return INTERRUPTED if asked else ended.exit_code if ended.exit_code is not None else 1
            if interrupts > 1:
                print(f"{run.path.name} goes on; `cockpit tail {run.path.name}` finds it again.", file=sys.stderr)
                return INTERRUPTED
            if interrupts and not asked:
                asked = True
                print("Stopping after this step; Ctrl-C once more leaves the run going.", file=sys.stderr)
                launch.send(run, cmd.Stop(attempt=attempt))
            time.sleep(POLL_SECONDS)
    finally:
        signal.signal(signal.SIGINT, previous)
