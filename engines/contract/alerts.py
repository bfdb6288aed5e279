"""What is wrong with a training, by rules on its epochs and its machine; each gives a `Finding` while it holds.

The rules would rather miss than cry wolf: docs/alerts.md has the rates, measured on real curves and made ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engines.basics.amounts import duration, money, size
from engines.contract.metric_names import whole_loss

if TYPE_CHECKING:
    from engines.contract.events import Epoch

NONFINITE, CHECKPOINT_FAILED, FULL_DISK = "nonfinite", "checkpoint-failed", "disk-full"
"""Raised by the loop itself, or by a script's Reporter; the others by the watchdog."""
PLATEAU, OVERFIT, GRADIENT, DATA_WAIT = "plateau", "overfit", "gradient", "data-wait"
STALL, DISK, BUDGET = "stall", "disk", "budget"
EXPLOIT = "exploit"
LASTING = frozenset(
    {NONFINITE, CHECKPOINT_FAILED, FULL_DISK, PLATEAU, OVERFIT, GRADIENT, DATA_WAIT, STALL, DISK, BUDGET, EXPLOIT}
)
"""Alerts that stay active until they are over; the others report something that has happened."""

PLATEAU_EPOCHS, PLATEAU_SHARE = 12, 0.25
OVERFIT_EPOCHS, OVERFIT_FALL, OVERFIT_CLIMB, OVERFIT_RISE = 8, -2.0, 4.0, 0.05
EXPLOIT_EPOCHS, EXPLOIT_TREND = 5, 3.0
SPARE_CHECKPOINTS, SPARE_BYTES = 2, 64 * 10**6
"""A new checkpoint is written beside the last one, and where links are not possible the best is a copy."""
NEAR = 0.9


@dataclass(frozen=True)
class Finding:
    """Something is wrong now, in words without what to do about it: that depends on where it is read."""

    code: str
    text: str
    level: Literal["warning", "error"] = "warning"


def trend(values: Sequence[float]) -> float:
    """Slope of the least-squares line through `values` in units of its standard error (the t statistic).

    Infinite where they lie on a line exactly, 0 for a constant and for fewer than three.
    """
    count = len(values)
    if count < 3:
        return 0.0
    mean = sum(values) / count
    places = [place - (count - 1) / 2 for place in range(count)]
    spread = sum(place * place for place in places)
    slope = sum(place * value for place, value in zip(places, values, strict=True)) / spread
    rest = sum((value - mean - slope * place) ** 2 for place, value in zip(places, values, strict=True))
    error = math.sqrt(rest / (count - 2) / spread)
    return slope / error if error else math.copysign(math.inf, slope) if slope else 0.0


def plateau(rows: Sequence[Epoch], tried: int, *, told: bool = False) -> Finding | None:
    """No better score for twelve epochs and a quarter of all, and no trend upwards in them.

    `rows` are the epochs of one stage, the last `tried` of them since the person last changed something: the wait
    counts from there. Once `told` it holds until a better score or a change.
    """
    scored = [(row.score, row.epoch) for row in rows if row.score is not None]
    if not scored:
        return None
    best, epoch = max(scored, key=lambda one: (one[0], -one[1]))
    waited = min(tried, sum(later > epoch for _, later in scored))
    if waited < max(PLATEAU_EPOCHS, math.ceil(PLATEAU_SHARE * len(scored))):
        return None
    if not told and trend([score for score, _ in scored[-waited:]]) > 0:
        return None
    return Finding(PLATEAU, f"no better score than {best:.4g} since epoch {epoch}")  # true as long as it stands


def overfit(rows: Sequence[Epoch], tried: int, *, told: bool = False) -> Finding | None:
    """Since the lowest validation loss the training loss fell and the validation loss rose, both beyond doubt.

    `rows` are epochs of one stage with the same loss weights, `tried` as for `plateau`. Not raised while the score
    still improves: it alone says what is kept, and validation loss often rises under a rising score.
    """
    known = [(whole_loss(row.train), whole_loss(row.validation), row) for row in rows]
    losses = [(train, seen, row) for train, seen, row in known if train is not None and seen is not None]
    if not losses:
        return None
    lowest = min(range(len(losses)), key=lambda place: losses[place][1])
    least, since = losses[lowest][1], losses[lowest + 1 :]
    if min(tried, len(since)) < OVERFIT_EPOCHS or any(row.best for _, _, row in since[-OVERFIT_EPOCHS // 2 :]):
        return None
    now = sorted(seen for _, seen, _ in since[-3:])[1]
    falls = trend([train for train, _, _ in since]) <= OVERFIT_FALL
    rises = trend([seen for _, seen, _ in since]) >= OVERFIT_CLIMB and now - least >= OVERFIT_RISE * abs(least)
    if not told and not (falls and rises):
        return None
    epoch = losses[lowest][2].epoch
    return Finding(
        OVERFIT, f"the training loss falls while validation rises: from {least:.4g} in epoch {epoch} to {now:.4g}"
    )


def exploit(rows: Sequence[Epoch], proxies: Mapping[str, str], *, told: bool = False) -> Finding | None:
    """What a model says of itself rises while what it stands for, measured, falls, both beyond doubt.

    `rows` are epochs of one stage since the user last changed something; `proxies` are validation values, as
    {"imagined_return": "played_return"}. Looked at are the epochs after the best measured one, five or more of them.
    Once `told` it holds until a better measured value or a change.
    """
    for said, measured in proxies.items():
        pairs = [(row.validation.get(said), row.validation.get(measured), row.epoch) for row in rows]
        known = [(rises, falls, epoch) for rises, falls, epoch in pairs if rises is not None and falls is not None]
        if not known:
            continue
        best = max(range(len(known)), key=lambda index: known[index][1])
        since = known[best + 1 :]
        if len(since) < EXPLOIT_EPOCHS:
            continue
        rising = trend([rises for rises, _, _ in since]) >= EXPLOIT_TREND
        falling = trend([falls for _, falls, _ in since]) <= -EXPLOIT_TREND
        if told or (rising and falling):
            text = f"{_words(said)} rises while {_words(measured)} falls: from {known[best][1]:.4g} in epoch"
            return Finding(EXPLOIT, f"{text} {known[best][2]} to {since[-1][1]:.4g}")
    return None


def _words(name: str) -> str:
    return name.replace("_", " ")


def disk_low(free: int, checkpoint: int) -> Finding | None:
    """Less is free than two checkpoints of `checkpoint` bytes take, 0 while none is known of, and a little more."""
    if free >= SPARE_CHECKPOINTS * checkpoint + SPARE_BYTES:
        return None
    wanted = f", and its next checkpoint takes {size(checkpoint)}" if checkpoint else ""
    return Finding(DISK, f"{size(free)} are free on the run's disk{wanted}")


def budget_near(spent: float, budget: float, usd_per_hour: float) -> Finding | None:
    """Nine tenths of the budget are spent (US dollars)."""
    if not budget or not usd_per_hour or spent < NEAR * budget:
        return None
    left = duration(max(0.0, budget - spent) / usd_per_hour * 3600)
    return Finding(
        BUDGET, f"{money(spent)} of the budget of ${budget:,g} is spent: the run is saved and stopped in {left}"
    )
