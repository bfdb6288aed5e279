"""How long the attempts of a run ran, and what that cost in US dollars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engines.contract.rundir import Attempt


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
