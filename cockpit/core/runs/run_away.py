"""What happened in one run while nobody looked at it."""

from __future__ import annotations

from cockpit.core.format import count
from cockpit.core.run.model import RunModel
from cockpit.core.runs.away import LEAST_SECONDS, Away
from engines.basics.amounts import money
from engines.runs import spending
from engines.runs.history import History


def since(model: RunModel, moment: float | None, now: float) -> Away | None:
    """What happened from `moment`, when the run was last looked at, to `now`; None if that is no news.

    `11 epochs`, `best 0.736 (epoch 39)`, `2 alerts`, `failed`, `$3.40`.
    """
    if moment is None or now - moment < LEAST_SECONDS:
        return None
    happened = _progress(model.history, moment)
    alerts = sum(alert.time > moment and alert.level != "info" for alert in model.history.alerts)
    if alerts:
        happened.append(_counted(alerts, "alert"))
    if model.attempt is not None and model.attempt.ended is not None and model.attempt.ended.time > moment:
        happened.append(model.status.state)
    spent = spending.usd_since(model.spans, moment, now)
    if spent >= 0.005:
        happened.append(money(spent))
    return Away(now - moment, tuple(happened)) if happened else None


def _progress(history: History, moment: float) -> list[str]:
    """Epochs that ended since, and the best, if it is among them."""
    ended = sum(row.time > moment for row in history.epochs.values())
    words = [_counted(ended, "epoch")] if ended else []
    best = history.best
    if best is not None and best.time > moment and best.score is not None:
        words.append(f"best {best.score:.3f} (epoch {best.epoch})")
    return words


def _counted(number: int, noun: str) -> str:
    return f"{count(number)} {noun}{'s' if number != 1 else ''}"
