"""What `ls` and `show` know of a run, gathered from its directory."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from cockpit.core import cost
from engines.contract import commands as cmd
from engines.contract.errors import DataError
from engines.contract.history import History
from engines.contract.rundir import Attempt, RunDirectory, RunInfo
from engines.contract.state import RunReader, Status


@dataclass(frozen=True)
class Summary:
    """A run read once, all of it."""

    run: RunDirectory
    info: RunInfo
    status: Status
    history: History
    attempts: tuple[Attempt, ...]
    damaged_lines: int

    @classmethod
    def read(cls, run: RunDirectory) -> Summary:
        """Raises `DataError` for a directory whose records cannot be read."""
        info = run.info
        reader = RunReader(run)
        status = reader.status()
        attempts = tuple(run.attempt(number) for number in run.attempt_numbers())
        return cls(run, info, status, reader.history, attempts, reader.damaged_lines)

    @property
    def spans(self) -> tuple[cost.Span, ...]:
        last = {self.history.attempt: self.history.last_event}
        return cost.spans_of(self.attempts, last, live=self.status.live)

    @property
    def device(self) -> str:
        started = self.history.started
        return started.device if started else self.attempts[-1].device if self.attempts else ""

    def short(self) -> dict[str, Any]:
        """What a list shows, as plain values; numbers a run does not have are None."""
        best, newest, started = self.history.best, self.history.newest, self.history.started
        return {
            "id": self.info.id,
            "state": self.status.state,
            "detail": self.status.detail,
            "project": self.info.project,
            "kind": self.info.kind,
            "title": self.info.title,
            "label": self.info.label,
            "epoch": newest.epoch if newest else 0 if started else None,
            "epochs": cost.total_epochs(self.history) if started else None,
            "score": newest.score if newest else None,
            "best_score": best.score if best else None,
            "best_epoch": best.epoch if best else None,
            "device": self.device,
            "created": self.info.created,
            "age_seconds": max(0.0, time.time() - self.info.created),
            "path": str(self.run.path),
        }

    def full(self) -> dict[str, Any]:
        """Everything `show` tells."""
        history, now = self.history, time.time()
        saved = history.checkpoints[-1] if history.checkpoints else None
        return {
            **self.short(),
            "step": max((row.step for row in history.epochs.values()), default=0),
            "seconds": cost.seconds_spent(self.spans, now),
            "usd": cost.usd_spent(self.spans, now),
            "checkpoint": {"step": saved.step, "files": saved.files, "size": saved.size} if saved else None,
            "weights": history.newest.weights if history.newest else None,
            "resumed_from_steps": history.resumes,
            "attempts": [_attempt(attempt) for attempt in self.attempts],
            "edits": [
                {"step": edit.step, "attempt": edit.attempt, "what": cmd.describe(edit.command)}
                for edit in history.edits()
            ],
            "alerts": [
                {"time": alert.time, "step": alert.step, "level": alert.level, "code": alert.code, "text": alert.text}
                for alert in history.alerts
            ],
            "damaged_lines": self.damaged_lines,
        }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    ended = attempt.ended
    return {
        "number": attempt.number,
        "started": attempt.started,
        "host": attempt.host,
        "supervisor_pid": attempt.supervisor.pid,
        "engine_pid": attempt.engine.pid if attempt.engine else None,
        "git": attempt.git,
        "versions": attempt.versions,
        "ended": ended.time if ended else None,
        "reason": ended.reason if ended else None,
        "error": ended.error if ended else None,
    }


def short_of_any(run: RunDirectory) -> dict[str, Any]:
    """A run's line in the list; one that cannot be read is `broken`, and harms no other."""
    try:
        return Summary.read(run).short()
    except DataError as error:
        return {"id": run.path.name, "state": "broken", "detail": str(error), "path": str(run.path)}
