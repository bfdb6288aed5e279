"""What the ranks beside the first have in the place of events and commands: they write nothing and hear rank 0."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Literal

from engines.basics.files import FILE_MODE
from engines.contract import commands as cmd
from engines.contract.events import Ended, Event, EventWriter
from engines.contract.rundir import RunDirectory
from engines.runtime.attempt import Attempt, work_safely
from engines.runtime.listener import CommandListener

MARK = "COCKPIT_RANK_OF"
"""In the environment of a rank: the run directory. `RANK` alone may be of another program."""
LOST = 75
"""Exit code of a rank that cannot go on because another one ended: it is not to blame."""
GRACE_SECONDS = 2.0
"""What fails on every rank is for rank 0 to say: the others leave after it."""


class NoEvents(EventWriter):
    """Takes events and keeps none."""

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt

    def write(self, event: Event, *, durable: bool = False) -> None:
        pass

    def close(self) -> None:
        pass


class NoCommands(CommandListener):
    """Hears nothing: what is to be done comes from rank 0."""

    def take(self, step: int, epoch: int, *, kind: type[cmd.Order] = cmd.Order) -> list[cmd.Command]:
        return []

    def answer(
        self, command: cmd.Command, state: Literal["applied", "refused"], *, step: int, epoch: int = 0, reason: str = ""
    ) -> None:
        pass

    def close(self, reason: str) -> None:
        pass

    def wait(self, seconds: float) -> None:
        """Rank 0 waits; its next word is waited for then."""


def rank_of(run: RunDirectory) -> int:
    """Which rank of the run this process is; 0 where there are no others."""
    return int(os.environ["RANK"]) if os.environ.get(MARK) == str(run.path) else 0


def follow(run: RunDirectory, number: int, rank: int, work: Callable[[Attempt], Ended]) -> int:
    """Do `work` of attempt `number` beside rank 0, with a log of its own; gives the exit code.

    0 for every end that rank 0 comes to as well: it says what became of the run.
    """
    log = os.open(run.rank_log(rank), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    print(f"rank {rank} of attempt {number}", flush=True)
    events = NoEvents(number)
    _, code, raised = work_safely(Attempt(run, events, NoCommands(run, number, events)), work)
    if not raised:
        return 0
    sys.stdout.flush()
    time.sleep(GRACE_SECONDS)
    return code
