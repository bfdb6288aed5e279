"""Carries out `cost.on_finish` and the commands beside it, such as one that stops a rented machine, when a training has
ended and the machine has nothing else to do. Torch-free; the supervisor calls it when it has let everything go.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from engines.basics.amounts import duration
from engines.basics.errors import DataError
from engines.basics.files import FILE_MODE
from engines.basics.jsonl import last_lines
from engines.basics.lock import lock_holder
from engines.contract import on_finish
from engines.contract.events import Alert, EventWriter, RunStarted
from engines.contract.on_finish import COPY_FIRST, ON_ERROR, ON_FINISH, ON_IDLE, ON_STALL
from engines.contract.rundir import Attempt, RunDirectory
from engines.host.queue import places
from engines.runs.state import RunReader, describe_end
from engines.runs.store import list_runs
from engines.supervisor import notify, processes
from engines.supervisor.idle import wait_until_idle

SECONDS = 300.0
"""How long a command may take."""
COPY_SECONDS = 6 * 3600.0
"""How long `copy_first` may take: a large run over a slow line."""
GRACE_SECONDS = 5.0
RUNS_AFTER = ("finished", "early-stopped", "out-of-budget", "failed")
"""Not after a stop: the user is there."""


def due(
    run: RunDirectory, attempt: Attempt, commands: Mapping[str, on_finish.Command], *, unseen: bool, stalled: bool
) -> str:
    """The setting whose command the end of `attempt` calls for; empty for none.

    `unseen`: it began by itself, after a wait for its device or as a restart.

    A start that fails at once is seen by whoever made it, and theirs to mend.
    """
    end = attempt.ended
    if end is None or end.reason not in RUNS_AFTER:
        return ""
    events = RunReader(run).poll()
    if not unseen and not any(isinstance(event, RunStarted) and event.attempt == attempt.number for event in events):
        return ""
    if stalled and ON_STALL in commands:
        return ON_STALL
    if end.reason == "failed" and ON_ERROR in commands:
        return ON_ERROR
    return ON_FINISH if ON_FINISH in commands else ""


class Afterwards:
    """What is done after the end of an attempt. Of what goes wrong nothing touches the run.

    Its user holds neither the run's lock nor a place in a queue any more.
    """

    def __init__(self, run: RunDirectory, attempt: Attempt, commands: Mapping[str, on_finish.Command]) -> None:
        self._run, self._attempt, self._commands = run, attempt, commands
        self._events = EventWriter(run.events, attempt.number)

    def carry_out(self, name: str) -> bool:
        """Run the command of the setting `name` and record how it ended; True where it is left to another run, too.

        False where it could not run, or failed.
        """
        with contextlib.suppress(OSError, DataError):  # the run may be gone, its disk full
            try:
                return self._left_to_another(name) or (self._copied(name) and self._run_one(name, SECONDS))
            except (DataError, OSError) as error:
                self._tell("error", f"cost.{name} did not run: {error}")
        return False

    def when_idle(self, minutes: float, heard: Sequence[int]) -> None:
        """Run `on_idle` once the machine has been idle for so long; left to the next run where one starts."""
        with contextlib.suppress(OSError, DataError):
            self._tell("info", f"cost.on_idle waits for {minutes:g} minutes without a run and without a key pressed")
            if why := wait_until_idle(minutes * 60, lambda: other_work(self._run), heard):
                self._tell("info", f"cost.on_idle does not run: {why}")
            elif self._run.info_file.exists():  # deleting the run calls it off
                self.carry_out(ON_IDLE)

    def _left_to_another(self, name: str) -> bool:
        if other := other_work(self._run):
            self._tell("info", f"cost.{name} is left to the last run: {other} still runs on this machine")
        return bool(other)

    def _copied(self, name: str) -> bool:
        """Whether `copy_first` has succeeded, if there is one, and the machine still has nothing else to do."""
        if COPY_FIRST not in self._commands:
            return True
        if not self._run_one(COPY_FIRST, COPY_SECONDS):
            self._tell("error", f"cost.{name} does not run, since cost.copy_first did not succeed")
            return False
        return not self._left_to_another(name)

    def _run_one(self, name: str, seconds: float) -> bool:
        command = self._commands[name]
        self._tell("info", f"cost.{name} runs: {on_finish.words(command)}")  # before it, for it may stop the machine
        began = time.monotonic()
        log = self._run.stdout.with_name(f"{name}.log")
        code = self._wait(on_finish.resolved(command), log, seconds)
        if code == 0:
            self._tell("info", f"cost.{name} has run in {duration(time.monotonic() - began)}")
        else:
            self._tell("error", f"cost.{name} {_failure(code, seconds)}{_last_line(log)}")
        return code == 0

    def _wait(self, words: Sequence[str], log: Path, seconds: float) -> int | None:
        """The exit code; None where it took too long and was ended."""
        end = self._attempt.ended
        assert end is not None
        told = {
            "COCKPIT_RUN": str(self._run.path), "COCKPIT_RUN_ID": self._run.info.id, "COCKPIT_STATE": end.reason,
            "COCKPIT_DETAIL": describe_end(end),
        }  # fmt: skip
        with open(log, "ab", opener=lambda path, flags: os.open(path, flags, FILE_MODE)) as output:
            process = subprocess.Popen(
                words,
                cwd=self._run.path, env={**os.environ, **told}, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                process_group=0, preexec_fn=processes.die_with_parent(os.getpid()),  # noqa: PLW1509  (alone)
            )  # fmt: skip
            code = None
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(seconds)
        processes.end_descendants(GRACE_SECONDS)
        return code

    def _tell(self, level: Literal["info", "error"], text: str) -> None:
        self._events.write(Alert(code="on-finish", level=level, text=text), durable=True)
        if level == "error":
            notify.post(self._run.info, "on-finish", level, text)


def other_work(run: RunDirectory) -> str:
    """The name of something that runs or waits on this machine, this run too if somebody has resumed it.

    Raises `DataError` where that cannot be found out.
    """
    busy = [place.run for place in places()]
    busy += [one.path for one in list_runs() if (lock_holder(one.lock) or 0) > 0]  # none of another machine
    return min((path.name for path in busy), default="")


def _failure(code: int | None, seconds: float) -> str:
    if code is None:
        return f"was killed: it took more than {duration(seconds)}"
    return f"failed with exit code {code}" if code > 0 else f"was killed by signal {-code}"


def _last_line(log: Path) -> str:
    line = " ".join(last_lines(log, 1))
    return f": {line[:200]} (more in logs/{log.name})" if line else ""
