"""One attempt of any engine: hear commands from the first moment on, work, and leave a sentence about the end.

Torch-free: an engine imports its heavy parts inside its work, so that commands are answered while they load.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from engines.basics.errors import UserError
from engines.contract import references
from engines.contract.events import Ended, EndReason, EventWriter, Phase
from engines.contract.rundir import RunDirectory
from engines.runtime.listener import CommandListener
from engines.runtime.room import free_reserve, is_full, keep_reserve

EXIT_CODES: dict[EndReason, int] = {"finished": 0, "early-stopped": 0, "stopped": 3, "failed": 1}


@dataclass(frozen=True)
class Attempt:
    """What the work of an engine is given."""

    run: RunDirectory
    events: EventWriter
    listener: CommandListener


def work_safely(attempt: Attempt, work: Callable[[Attempt], Ended]) -> tuple[Ended, int, bool]:
    """The end that `work` came to, or the failure it met, the exit code, and whether `work` raised something."""

    def failed(detail: str, code: int = 1, *, trace: bool = False, raised: bool = True) -> tuple[Ended, int, bool]:
        with contextlib.suppress(OSError):  # the log lies on the disk that may be full
            if trace:
                traceback.print_exc()
            print(detail, file=sys.stderr, flush=True)
        return Ended(reason="failed", step=attempt.listener.step(), detail=detail), code, raised

    try:
        ended = work(attempt)
    except UserError as error:
        return failed(str(error), error.exit_code)
    except ModuleNotFoundError as error:
        return failed(f"{references.missing(error)}.")
    except OSError as error:
        advice = "; free some space, then resume" if is_full(error) else ""
        where = error.filename or attempt.run.path
        return failed(f"{where} cannot be used: {error.strerror or error}{advice}", trace=not advice)
    except Exception as error:  # a fault of ours or of a project: the log gets the traceback, the person a sentence
        return failed(f"{type(error).__name__}: {error}", trace=True)
    if ended.reason == "failed":
        return failed(ended.detail, raised=False)
    return ended, EXIT_CODES[ended.reason], False


def carry_out(run: RunDirectory, number: int, work: Callable[[Attempt], Ended]) -> int:
    """Do `work` as attempt `number` of `run` and give the engine's exit code.

    Every end is on record, and so is an answer to every command that was sent before it.
    """
    events = EventWriter(run.events, number)
    with CommandListener(run, number, events) as listener:
        keep_reserve(run)
        with contextlib.suppress(OSError):  # on a full disk what comes next says so
            events.write(Phase(phase="loading"))
        ended, code, _ = work_safely(Attempt(run, events, listener), work)
    free_reserve(run)
    with contextlib.suppress(OSError):  # on a full disk the exit code and the supervisor have to say it
        events.write(ended, durable=True)
        listener.close("the run has ended")
    return code
