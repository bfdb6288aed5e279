"""Carries out `cost.on_finish`: a command of the person's, such as one that stops a rented machine, when a training has
ended and the machine has nothing else to do. Torch-free; the supervisor calls it when it has let everything go.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path
from typing import Literal

from engines.basics.amounts import duration
from engines.basics.errors import DataError
from engines.basics.files import FILE_MODE
from engines.basics.jsonl import last_lines
from engines.basics.lock import lock_holder
from engines.contract import on_finish
from engines.contract.events import Alert, EventWriter, RunStarted
from engines.contract.rundir import Attempt, RunDirectory
from engines.host.queue import places
from engines.runs.state import RunReader, describe_end
from engines.runs.store import list_runs
from engines.supervisor import notify, processes

SECONDS = 300.0
"""How long the command may take."""
GRACE_SECONDS = 5.0
RUNS_AFTER = ("finished", "early-stopped", "out-of-budget", "failed")
"""Not after a stop: the user is there."""


def is_due(run: RunDirectory, attempt: Attempt, *, queued: bool) -> bool:
    """Whether the end of `attempt` is one that it is for. `queued`: the run had waited for its device.

    A start that fails at once is seen by whoever made it, and theirs to mend.
    """
    end = attempt.ended
    if end is None or end.reason not in RUNS_AFTER:
        return False
    events = RunReader(run).poll()
    return queued or any(isinstance(event, RunStarted) and event.attempt == attempt.number for event in events)


def carry_out(run: RunDirectory, attempt: Attempt, command: on_finish.Command) -> None:
    """Run it, if nothing else is at work here, and tell how it ended. Of what goes wrong nothing touches the run.

    The caller holds neither the run's lock nor a place in a queue any more.
    """
    with contextlib.suppress(OSError, DataError):  # the run may be gone, its disk full
        events = EventWriter(run.events, attempt.number)
        level: Literal["info", "error"] = "info"
        text = f"cost.on_finish runs: {on_finish.words(command)}"
        try:
            if other := other_work(run):
                text = f"cost.on_finish is left to the last run: {other} still runs on this machine"
            else:
                _tell(run, events, "info", text)  # before it, for it may stop the machine
                level, text = _run(run, attempt, command)
        except (DataError, OSError) as error:
            level, text = "error", f"cost.on_finish did not run: {error}"
        _tell(run, events, level, text)


def other_work(run: RunDirectory) -> str:
    """The name of something that runs or waits on this machine, this run too if somebody has resumed it.

    Raises `DataError` where that cannot be told.
    """
    busy = [place.run for place in places()]
    busy += [one.path for one in list_runs() if (lock_holder(one.lock) or 0) > 0]  # none of another machine
    return min((path.name for path in busy), default="")


def _run(run: RunDirectory, attempt: Attempt, command: on_finish.Command) -> tuple[Literal["info", "error"], str]:
    assert attempt.ended is not None
    told = {
        "COCKPIT_RUN": str(run.path), "COCKPIT_RUN_ID": run.info.id, "COCKPIT_STATE": attempt.ended.reason,
        "COCKPIT_DETAIL": describe_end(attempt.ended),
    }  # fmt: skip
    log = run.stdout.with_name("on_finish.log")
    began = time.monotonic()
    with open(log, "ab", opener=lambda path, flags: os.open(path, flags, FILE_MODE)) as output:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command] if isinstance(command, str) else command,
            cwd=run.path, env={**os.environ, **told}, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            process_group=0, preexec_fn=processes.die_with_parent(os.getpid()),  # noqa: PLW1509  (nothing else runs)
        )  # fmt: skip
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(SECONDS)
    processes.end_descendants(GRACE_SECONDS)
    if code == 0:
        return "info", f"cost.on_finish has run in {duration(time.monotonic() - began)}"
    return "error", f"cost.on_finish {_failure(code)}{_last_line(log)}"


def _failure(code: int | None) -> str:
    if code is None:
        return f"was killed: it took more than {duration(SECONDS)}"
    return f"failed with exit code {code}" if code > 0 else f"was killed by signal {-code}"


def _last_line(log: Path) -> str:
    line = " ".join(last_lines(log, 1))
    return f": {line[:200]} (more in logs/{log.name})" if line else ""


def _tell(run: RunDirectory, events: EventWriter, level: Literal["info", "error"], text: str) -> None:
    events.write(Alert(code="on-finish", level=level, text=text), durable=True)
    if level == "error":
        notify.post(run.info, "on-finish", level, text)
