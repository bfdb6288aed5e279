"""How far a run is, and when it will be done."""

from __future__ import annotations

import math
from itertools import islice

from engines.contract.commands import StopEarly
from engines.runs.history import History

RECENT_EPOCHS = 5
LEAST_STEPS = 5
"""Steps before a rate is worth telling."""


def fraction_done(history: History, step: int) -> float:
    """Between 0 and 1: of a task by its progress, of a training by its steps."""
    if history.started is None:
        progress = history.progress if _counts(history) else None
        return min(1.0, progress.done / progress.total) if progress is not None and progress.total > 0 else 0.0
    planned = history.planned * history.started.steps_per_epoch
    return min(1.0, step / planned) if planned > 0 else 0.0


def seconds_left(history: History, step: int, now: float, attempt_started: float) -> float | None:
    """Estimate of the time to the end, None while there is nothing to base one on.

    A training's from the time of its recent epochs, before its first epoch from the rate of its steps; a task's from
    the rate of its progress.
    """
    if history.started is None:
        return _task_seconds_left(history, attempt_started)
    per_epoch = history.started.steps_per_epoch
    if per_epoch <= 0 or (steps_left := _last_step(history, per_epoch) - step) <= 0:
        return None
    rows = list(islice(reversed(history.epochs.values()), RECENT_EPOCHS))
    recent = [row.seconds for row in rows if row.attempt == history.attempt] or [row.seconds for row in rows]
    if recent:
        return steps_left / per_epoch * sum(recent) / len(recent)
    done = step - history.started.resumed_step
    return history.stepping(history.started.time, now) / done * steps_left if done >= LEAST_STEPS else None


def _counts(history: History) -> bool:
    """Whether its progress is that of the run, and not that of reading data before it."""
    return history.phase is None or history.phase.phase != "loading"


def _last_step(history: History, per_epoch: int) -> int:
    """Steps until the end: of all epochs, or of the running one where a person asked for an early stop."""
    last = history.planned * per_epoch
    for answer in history.applied():
        if isinstance(answer.command, StopEarly):
            last = min(last, max(1, math.ceil(answer.step / per_epoch)) * per_epoch)
    return last


def _task_seconds_left(history: History, attempt_started: float) -> float | None:
    progress = history.progress if _counts(history) else None
    if progress is None or progress.done <= 0 or progress.time <= attempt_started:
        return None
    return (progress.time - attempt_started) / progress.done * max(0.0, progress.total - progress.done)
