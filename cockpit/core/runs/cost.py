"""How far a run is, when it will be done, how long it ran and what that cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from engines.contract.commands import StopEarly
from engines.contract.history import History
from engines.contract.rundir import Attempt

RECENT_EPOCHS = 5
LEAST_STEPS = 5
"""Steps before a rate is worth telling."""


@dataclass(frozen=True)
class Span:
    """The time one attempt ran, at its price; `ended` is None while it runs."""

    started: float
    ended: float | None
    usd_per_hour: float


def spans_of(attempts: Iterable[Attempt], last_seen: Mapping[int, float], *, live: bool) -> tuple[Span, ...]:
    """The attempts as spans, oldest first; without those that only ever waited for their device.

    One without a recorded end still runs if it is the newest and the run is live; else it ran until its last event.
    """
    ordered = sorted((attempt for attempt in attempts if not attempt.queued), key=lambda attempt: attempt.number)
    spans = []
    for attempt in ordered:
        if attempt.ended is not None:
            ended: float | None = attempt.ended.time
        elif live and attempt is ordered[-1]:
            ended = None
        else:
            ended = last_seen.get(attempt.number, attempt.started)
        spans.append(Span(attempt.started, ended, attempt.usd_per_hour))
    return tuple(spans)


def seconds_spent(spans: Iterable[Span], now: float) -> float:
    """Seconds the run has run, over all its attempts."""
    return sum(max(0.0, (now if span.ended is None else span.ended) - span.started) for span in spans)


def usd_spent(spans: Iterable[Span], now: float) -> float | None:
    """US dollars spent so far; None when the machine has no price."""
    priced = [span for span in spans if span.usd_per_hour > 0]
    return sum(seconds_spent([span], now) / 3600 * span.usd_per_hour for span in priced) if priced else None


def usd_since(spans: Iterable[Span], moment: float, now: float) -> float:
    """US dollars spent from `moment` to `now`; what has no price cost nothing."""
    return sum(
        max(0.0, (now if span.ended is None else span.ended) - max(span.started, moment)) / 3600 * span.usd_per_hour
        for span in spans
    )


def fraction_done(history: History, step: int) -> float:
    """Between 0 and 1: of a task by its progress, of a training by its steps."""
    if history.started is None:
        progress = history.progress
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
    return (now - history.started.time) / done * steps_left if done >= LEAST_STEPS else None


def _last_step(history: History, per_epoch: int) -> int:
    """Steps until the end: of all epochs, or of the running one where a person asked for an early stop."""
    last = history.planned * per_epoch
    for answer in history.applied():
        if isinstance(answer.command, StopEarly):
            last = min(last, max(1, math.ceil(answer.step / per_epoch)) * per_epoch)
    return last


def _task_seconds_left(history: History, attempt_started: float) -> float | None:
    progress = history.progress
    if progress is None or progress.done <= 0 or progress.time <= attempt_started:
        return None
    return (progress.time - attempt_started) / progress.done * max(0.0, progress.total - progress.done)
