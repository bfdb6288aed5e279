"""Loss weights being edited: a draft beside the weights in force, with locks, equal shares and undo."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cockpit.core.series import Series
from cockpit.core.steering.number_keys import typed_number
from engines.contract.spec import SCALE
from engines.runs.history import History

FINE = 5
"""Fine steps in a step."""
RECENT = 50
"""Logged steps whose mean is the raw loss of a head."""
KEPT = 100
"""Drafts that undo goes back through."""


def configured(config: Mapping[str, Any]) -> dict[str, float]:
    """The weights of a config; none where it has none, and none for what is no number."""
    given = config.get("loss_weights")
    weights = given.items() if isinstance(given, Mapping) else ()
    return {str(head): float(weight) for head, weight in weights if isinstance(weight, int | float)}


def recent_means(series: Mapping[str, Series], heads: Sequence[str]) -> dict[str, float | None]:
    """Of each head the mean of what the last logged steps tell and is finite; None where that is nothing.

    So it is for a head that is off in this stage, whatever it told in an earlier one.
    """
    loss = series.get("loss")
    since = float(loss.step[-RECENT:][0]) if loss is not None and len(loss.step) else -math.inf
    return {head: _recent_mean(series[head], since) if head in series else None for head in heads}


def scaled(losses: Mapping[str, float | None], series: Mapping[str, Series]) -> dict[str, float | None]:
    """The raw `losses` as they pull at the weights: times the recent scale, of a head whose loss has one."""
    scales = recent_means(series, [head + SCALE for head in losses])
    pulls: dict[str, float | None] = {}
    for head, loss in losses.items():
        scale = scales[head + SCALE]
        pulls[head] = loss if loss is None or scale is None else loss * scale
    return pulls


def _recent_mean(one: Series, since: float) -> float | None:
    values = one.value[-RECENT:][one.step[-RECENT:] >= since]
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else None


def shares(weights: Mapping[str, float], amounts: Mapping[str, float | None]) -> dict[str, float | None]:
    """Of each head the share of |weight × amount| in the sum over all; None where its amount is not known."""
    pulls = {
        head: abs(weight * amount)
        for head, weight in weights.items()
        if (amount := amounts.get(head)) is not None and math.isfinite(amount)
    }
    total = sum(pulls.values())
    return {head: pulls[head] / total if head in pulls and total > 0 else None for head in weights}


def step_of(weight: float) -> float:
    """How far an arrow key moves a weight: a twentieth of the power of ten at or above it (0.05 between 0.1 and 1)."""
    power = math.ceil(math.log10(weight) - 1e-9) if weight > 0 else 0
    return float(10.0 ** max(power, -5) / 20)


def nudged(weight: float, direction: int, *, fine: bool = False) -> float:
    """The next weight on the grid of its step, up (1) or down (-1), never below 0."""
    step = step_of(weight * (1 + direction * 1e-6)) / (FINE if fine else 1)  # at 1 up by 0.5, down by 0.05
    place = math.floor(weight / step + 1e-6) + 1 if direction > 0 else math.ceil(weight / step - 1e-6) - 1
    return max(0.0, rounded(place * step))


def rounded(weight: float) -> float:
    """Three digits: more of a weight tells nothing."""
    return float(f"{weight:.3g}")


def typed_weight(text: str) -> float | None:
    """A finite number of 0 or more, or None."""
    weight = typed_number(text)
    return weight if weight is not None and weight >= 0 else None


@dataclass
class WeightDraft:
    """New weights for heads that have `default` ones and `now` others in force."""

    default: Mapping[str, float]
    now: dict[str, float] = field(default_factory=dict)
    locked: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.now = {**self.default, **self.now}
        self.new = dict(self.now)
        self._before: list[dict[str, float]] = []

    @property
    def heads(self) -> Sequence[str]:
        return list(self.default)

    @property
    def changes(self) -> dict[str, float]:
        """The new weights that differ from those in force."""
        return {head: weight for head, weight in self.new.items() if weight != self.now[head]}

    def in_force(self, weights: Mapping[str, float]) -> bool:
        """Take what is in force now; what the person has not touched goes along. Whether anything changed."""
        known = {head: weight for head, weight in weights.items() if head in self.default}
        if known.items() <= self.now.items():
            return False
        for head, weight in known.items():
            if self.new[head] == self.now[head]:
                self.new[head] = weight
            self.now[head] = weight
        return True

    def follow(self, history: History) -> None:
        """Take what is in force by the run's edits, all at once: a draft may be the weights that held in between."""
        self.in_force(history.loss_weights(self.default))

    def set(self, weights: Mapping[str, float]) -> None:
        """Take these weights, but for heads that are locked."""
        new = self.new | {head: weight for head, weight in weights.items() if head not in self.locked}
        if new != self.new:
            self._before = [*self._before[1 - KEPT :], self.new]
            self.new = new

    def toggle_lock(self, head: str) -> None:
        """A locked head is left alone by everything that changes weights."""
        self.locked ^= {head}

    def equalise(self, losses: Mapping[str, float | None]) -> bool:
        """Give all free heads that count the same share, their sum as it is; whether that can be done.

        Heads of weight 0 stay off. w_i = S / (n |loss_i|), S the sum of |w_j loss_j| over the n free heads.
        """
        free = {
            head: abs(loss)
            for head in self.heads
            if head not in self.locked and self.new[head] > 0
            if (loss := losses.get(head)) is not None and math.isfinite(loss) and loss != 0
        }
        if len(free) < 2:
            return False
        each = sum(self.new[head] * loss for head, loss in free.items()) / len(free)
        self.set({head: rounded(each / loss) for head, loss in free.items()})
        return True

    def undo(self) -> bool:
        """Back to the draft before; whether there was one."""
        if not self._before:
            return False
        self.new = self._before.pop()
        return True
