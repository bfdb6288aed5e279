"""The state of a run, from facts only: who holds the lock, how the newest attempt ended, what the events say."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Literal

from engines.basics.errors import DataError
from engines.basics.jsonl import RecordFollower, damage_in
from engines.basics.lock import lock_holder
from engines.contract import events as ev
from engines.contract.alerts import STALL
from engines.contract.commands import Stop
from engines.contract.events import Event
from engines.contract.rundir import Attempt, End, RunDirectory
from engines.runs.history import History

State = Literal[
    "queued", "starting", "running", "paused", "stopping",
    "finished", "early-stopped", "stopped", "out-of-budget", "failed", "lost", "stale",
]  # fmt: skip
"""`stale`: live when it was last heard of, on a machine that does not answer now."""
STALLED = "stalled"
"""Begins the detail of a live run that gives no sign of life."""
LIVE: frozenset[State] = frozenset({"queued", "starting", "running", "paused", "stopping"})


@dataclass(frozen=True)
class Status:
    """A run's state and the sentence that explains it."""

    state: State
    detail: str = ""

    @property
    def live(self) -> bool:
        return self.state in LIVE


def describe_end(end: End) -> str:
    """How an attempt ended, in words a person can act on."""
    if end.reason != "failed":
        return end.error
    if end.signal is None and end.exit_code is None:  # no engine ever ran
        return end.error
    how = f"killed by {end.signal}" if end.signal else f"exit code {end.exit_code}"
    if end.oom_kill:
        how += ", out of memory (the kernel killed it)"
    if end.error and not end.last_step:  # a task, or a training that could not begin: its own sentence says it all
        return end.error if how == "exit code 1" else f"{end.error} ({how})"
    return f"{how} after step {end.last_step}" + (f": {end.error}" if end.error else "")


def _lost(attempt: Attempt | None, history: History) -> str:
    """Promises a resume only to a training of ours."""
    if attempt is not None and attempt.reports_itself:
        return "the program is gone and recorded no end (killed?)"
    way_on = ": resume starts at the last checkpoint" if attempt is not None and history.started is not None else ""
    return f"no engine and no end recorded (machine rebooted?){way_on}"


def _without_records(history: History) -> str:
    """Of a run without any attempt on record."""
    if not history.attempt:
        return "never started"
    end = f"; its events end with {history.ended.reason}" if history.ended is not None else ""
    return f"the records of its attempts are gone{end}"


def _how_it_was_asked_to_die(run: RunDirectory, attempt: Attempt | None) -> str:
    """Of a program that reports itself and is gone; empty where nobody has sent it a signal."""
    if attempt is None or not attempt.reports_itself or attempt.ended is not None:
        return ""
    with contextlib.suppress(OSError):
        return run.asked_to_die(attempt.number).read_text(encoding="utf-8", errors="replace").strip()
    return ""


def status_of(locked: bool, attempt: Attempt | None, history: History, asked_to_die: str = "") -> Status:
    """The state that these facts mean."""
    if attempt is not None and attempt.ended is not None:
        return Status(attempt.ended.reason, describe_end(attempt.ended))
    if not locked and asked_to_die:
        return Status("stopped", asked_to_die)
    if not locked and attempt is None:
        return Status("lost", _without_records(history))
    if not locked and attempt is not None and attempt.queued:
        return Status("lost", "ended while waiting for its device: resume puts it back into the queue")
    if not locked:
        return Status("lost", _lost(attempt, history))
    if attempt is None or history.phase is None or history.phase.attempt < attempt.number:
        return Status("queued" if attempt is not None and attempt.queued else "starting")
    if attempt.queued:
        return Status("queued", history.phase.detail)
    if history.ended is not None and history.ended.attempt == attempt.number:
        return Status("stopping", "leaving")
    asked = (a for a in history.answers if a.attempt == attempt.number and isinstance(a.command, Stop))
    if any(answer.state != "refused" for answer in asked):
        return Status("stopping", history.phase.detail or history.phase.phase)
    match history.phase.phase:
        case "paused":
            return Status("paused", history.phase.detail)
        case "queued":  # its turn has come, and the engine has not said anything yet
            return Status("starting")
        case "loading" | "compiling":
            return Status("starting", _doing(history))
        case _:
            return Status("running", _doing(history))


def _doing(history: History) -> str:
    """Its phase, how far that is, and whether it hangs in it: the process lives all the same."""
    phase: str = history.phase.phase if history.phase else ""
    if STALL in history.standing:
        return f"{STALLED} in {phase}"
    progress = history.progress
    if phase == "saving" and history.phase and history.phase.detail:
        far = f" {progress.done:,g}/{progress.total:,g}" if progress is not None else ""
        return f"{history.phase.detail}{far}"
    if phase in ("loading", "evaluating") and progress is not None and progress.attempt == history.attempt:
        unit = "".join(filter(str.isprintable, progress.unit))
        return f"{phase}, {progress.done:,g} of {progress.total:,g} {unit}"
    return phase


class RunReader:
    """Follows one run: its events gathered into a `History`, its status on demand.

    `at_once` bounds the bytes that one call reads of a long history; until it is no more `behind`, it knows a part.
    """

    def __init__(self, run: RunDirectory, at_once: int | None = None) -> None:
        self.run = run
        self.history = History()
        self._events: RecordFollower[Event] = RecordFollower(run.events, ev.decoder, at_once)

    @property
    def behind(self) -> bool:
        """Whether there is more to be read than the last call read."""
        return self._events.behind

    @property
    def damaged_lines(self) -> int:
        return len(self._events.damage)

    @property
    def damage(self) -> str:
        """The damaged lines in words, empty where there are none."""
        return damage_in(self.run.events.name, self._events.damage)

    def poll(self) -> list[Event]:
        """Events appended since the last call, already in `history`."""
        restarts = self._events.restarts
        new = self._events.poll()
        if self._events.restarts != restarts:
            self.history = History()
        self.history.extend(new)
        return new

    def status(self) -> Status:
        """The state now. Facts are asked in the order in which they change, so that an end is never missed."""
        numbers = self.run.attempt_numbers()
        locked = lock_holder(self.run.lock) is not None
        try:
            attempt = self.run.newest_attempt()
        except DataError as error:
            self.poll()
            return Status("running" if locked else "lost", str(error))
        if not locked and attempt is not None and attempt.number not in numbers:
            return self.status()  # it began after the lock was asked about
        self.poll()
        return self.status_from(locked, attempt)

    def status_from(self, locked: bool, attempt: Attempt | None) -> Status:
        """The state by these facts, just asked, and the events read so far."""
        return status_of(locked, attempt, self.history, "" if locked else _how_it_was_asked_to_die(self.run, attempt))
