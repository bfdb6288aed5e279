"""One attempt of any engine: hear commands from the first moment on, work, and leave a sentence about the end.

Torch-free: an engine imports its heavy parts inside its work, so that commands are answered while they load.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from engines.contract.errors import UserError
from engines.contract.events import Ended, EndReason, EventWriter, Phase
from engines.contract.rundir import RunDirectory
from engines.listener import CommandListener

EXIT_CODES: dict[EndReason, int] = {"finished": 0, "early-stopped": 0, "stopped": 3, "failed": 1}


@dataclass(frozen=True)
class Attempt:
    """What the work of an engine is given."""

    run: RunDirectory
    events: EventWriter
    listener: CommandListener


def _work_safely(attempt: Attempt, work: Callable[[Attempt], Ended]) -> tuple[Ended, int]:
    """The end that `work` came to, or the failure it met, and the exit code."""

    def failed(detail: str, code: int = 1) -> tuple[Ended, int]:
        print(detail, file=sys.stderr, flush=True)
        return Ended(reason="failed", step=attempt.listener.step(), detail=detail), code

    try:
        ended = work(attempt)
    except UserError as error:
        return failed(str(error), error.exit_code)
    except OSError as error:
        traceback.print_exc()
        return failed(f"{error.filename or attempt.run.path} cannot be used: {error.strerror or error}")
    except Exception as error:  # a fault of ours or of a project: the log gets the traceback, the person a sentence
        traceback.print_exc()
        return failed(f"{type(error).__name__}: {error}")
    if ended.reason == "failed":
        return failed(ended.detail)
    return ended, EXIT_CODES[ended.reason]


def carry_out(run: RunDirectory, number: int, work: Callable[[Attempt], Ended]) -> int:
    """Do `work` as attempt `number` of `run` and give the engine's exit code. Every end is on record."""
    events = EventWriter(run.events, number)
    with CommandListener(run, number, events) as listener:
        events.write(Phase(phase="loading"))
        ended, code = _work_safely(Attempt(run, events, listener), work)
    events.write(ended, durable=True)
    return code
