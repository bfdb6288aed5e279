"""How long a run takes and what that costs, with the range that the measurement leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engines.contract.settings import Cost
from engines.contract.steps import read_segments

WARM_UP = 5
PARTS = 10
ROUGH = 2.0
"""A run may take this many times what a few steps by themselves say: evaluations, saves, a busier machine."""


@dataclass(frozen=True)
class StepTimes:
    """Seconds a step: mean, and the means of the fastest and the slowest part of what was measured."""

    mean: float
    low: float
    high: float
    steps: int

    def seconds(self) -> dict[str, float]:
        return {"mean": self.mean, "low": self.low, "high": self.high}

    @classmethod
    def of(cls, seconds: np.ndarray) -> StepTimes:
        """From single steps `(n,)`, n ≥ 1: in parts, since on a GPU only the mean over several says anything."""
        parts = [float(part.mean()) for part in np.array_split(seconds, min(PARTS, len(seconds)))]
        return cls(float(seconds.mean()), min(parts), max(parts), len(seconds))


def recorded_step_times(folder: Path) -> StepTimes | None:
    """From the step records in `folder`, without warm-up and pauses between epochs; None for fewer than two steps."""
    times, epochs = (
        np.concatenate([records[:, columns.index(name)] for columns, records in read_segments(folder)] or [np.empty(0)])
        for name in ("time", "epoch")
    )
    seconds = np.diff(times)
    if not len(seconds):
        return None
    inside = seconds[np.diff(epochs) == 0]
    seconds = inside if len(inside) else seconds  # epochs of one step
    return StepTimes.of(seconds[min(WARM_UP, len(seconds) // 2) :])


def rough_time(step: StepTimes, steps: int) -> dict[str, Any]:
    """Seconds of `steps` steps and nothing else: at best as the fastest, at worst `ROUGH` times the slowest."""
    return {
        "low": steps * step.low,
        "likely": steps * step.mean,
        "high": steps * step.high * ROUGH,
        "per_step": step.seconds(),
        "measured": "steps",
    }


def tried_time(tried: Mapping[str, Any], steps: Mapping[str, int]) -> dict[str, Any]:
    """Seconds of the whole run by what was `tried`: loading, all steps, and a save an epoch and all evaluations."""
    per_step = tried["seconds_per_step"]
    beside = tried["loading_seconds"]
    beside += steps["evaluations"] * (tried["evaluation_seconds"] or 0) + steps["epochs"] * (tried["save_seconds"] or 0)
    low, likely, high = (steps["total"] * per_step[name] + beside for name in ("low", "mean", "high"))
    return {"low": low, "likely": likely, "high": high, "per_step": per_step, "measured": "try"}


def cost_of(time: Mapping[str, Any], cost: Cost) -> dict[str, Any] | None:
    """US dollars of a time, and the budget they have to come from; None for a machine without a price."""
    if not cost.usd_per_hour:
        return None
    dollars = {name: time[name] / 3600 * cost.usd_per_hour for name in ("low", "likely", "high")}
    return {**dollars, "usd_per_hour": cost.usd_per_hour, "budget": cost.budget_usd}
