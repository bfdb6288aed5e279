"""Staying with a run in the foreground: its log on stdout, Ctrl-C turned into a stop."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from types import FrameType

from engines.contract import commands as cmd
from engines.contract import on_finish
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.state import RunReader

POLL_SECONDS = 0.1
INTERRUPTED = 130


class _Interrupts:
    """Counts Ctrl-C from before the start on: none of them may end this process between two of its steps."""

    def __init__(self) -> None:
        self.count = 0
        signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1


def start_and_stay(run: RunDirectory) -> int:
    """Start the run and copy its log to stdout until it has ended; the engine's exit code, 130 after Ctrl-C.

    The first Ctrl-C asks the engine to save and stop; a second one leaves it running. Raises `UserError`.
    """
    interrupts = _Interrupts()
    for sentence in on_finish.sentences_of(run):
        print(sentence, file=sys.stderr)
    attempt = launch.start(run)
    print(f"run {run.path}", flush=True)
    reader = RunReader(run)
    asked = False
    position = 0
    while True:
        status = reader.status()
        position = _copy_log(run, position)
        if not status.live:
            return INTERRUPTED if asked else _exit_code(run, status.detail)
        if interrupts.count > 1:
            print(f"{run.path.name} keeps running; follow it with `cockpit tail {run.path.name}`.", file=sys.stderr)
            return INTERRUPTED
        if interrupts.count and not asked:
            asked = True
            print("Stopping after this step; Ctrl-C again leaves the run running.", file=sys.stderr)
            launch.send_stop(run, cmd.Stop(attempt=attempt))
        time.sleep(POLL_SECONDS)


def _copy_log(run: RunDirectory, position: int) -> int:
    """Copy what was logged since `position`, byte for byte, and give the new position."""
    with contextlib.suppress(FileNotFoundError), open(run.stdout, "rb") as log:
        log.seek(position)
        text = log.read()
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
        return position + len(text)
    return position


def _exit_code(run: RunDirectory, detail: str) -> int:
    attempt = run.newest_attempt()
    if attempt is None or attempt.ended is None:
        print(f"{run.path.name}: {detail}", file=sys.stderr)
        return 1
    return attempt.ended.exit_code if attempt.ended.exit_code is not None else 1
