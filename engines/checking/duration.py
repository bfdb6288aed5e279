"""How long a run takes and what that costs, with the range that the measurement leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engines.contract.settings import Cost
from engines.contract.steps import read_segments

WARM_UP = 5
PARTS = 10
LEAST_FOR_RANGE = 30
"""Steps below which nothing is said of how much they differ."""
ROUGH = 2.0
"""Without a try the range is this many times wider, either way: a few steps see little of what else a machine does."""
ALIKE = 1.25
"""Steps that differ by less than this factor are taken as equal where a try has measured one of them."""


@dataclass(frozen=True)
class StepTimes:
    """Seconds a step: median, and the means of the fastest and the slowest part; None for too few steps."""

    median: float
    low: float | None
    high: float | None
    steps: int

    def seconds(self) -> dict[str, float | None]:
        return {"median": self.median, "low": self.low, "high": self.high}

    def scaled(self, factor: float) -> StepTimes:
        """All of it times `factor`."""
        low, high = (None if side is None else side * factor for side in (self.low, self.high))
        return StepTimes(self.median * factor, low, high, self.steps)

    @classmethod
    def given(cls, seconds: float) -> StepTimes:
        """As a user says, of whom no range is known."""
        return cls(seconds, None, None, 0)

    @classmethod
    def of(cls, seconds: np.ndarray) -> StepTimes:
        """From single steps `(n,)`, n ≥ 1: in parts, since on a GPU only the mean over several says anything."""
        median = float(np.median(seconds))
        if len(seconds) < LEAST_FOR_RANGE:
            return cls(median, None, None, len(seconds))
        parts = [float(part.mean()) for part in np.array_split(seconds, PARTS)]
        return cls(median, min(median, *parts), max(median, *parts), len(seconds))


@dataclass(frozen=True)
class StageTime:
    """The steps of one stage, and what one takes at its beginning and at its end."""

    name: str
    epochs: int
    steps_per_epoch: int
    begin: StepTimes
    end: StepTimes

    @property
    def steps(self) -> int:
        return self.epochs * self.steps_per_epoch

    def seconds(self) -> dict[str, float | None]:
        """Of all its steps: as the mean of both ends, and from the cheaper to the more expensive one."""
        lows, highs = (self.begin.low, self.end.low), (self.begin.high, self.end.high)
        return {
            "low": None if None in lows else self.steps * min(filter(None, lows)),
            "likely": self.steps * (self.begin.median + self.end.median) / 2,
            "high": None if None in highs else self.steps * max(filter(None, highs)),
        }


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


def run_time(stages: Sequence[StageTime], beside: float, measured: str) -> dict[str, Any]:
    """Seconds of a run: all steps and what is `beside` them. Without a range where one of the stages has none.

    measured: how, by `steps` alone, by a `try`, or not at all (`given`). `steps` says at how many it was looked where
    it was at the fewest.
    """
    parts = [stage.seconds() for stage in stages]
    total: dict[str, float | None] = {}
    for name, factor in (("low", 1 / ROUGH), ("likely", 1.0), ("high", ROUGH)):
        seconds = [part[name] for part in parts]
        whole = None if None in seconds else beside + sum(filter(None, seconds))
        total[name] = whole if whole is None or measured == "try" else whole * factor
    fewest = min(point.steps for stage in stages for point in (stage.begin, stage.end))
    return {**total, "per_step": stages[0].begin.seconds(), "measured": measured, "steps": fewest}


def as_tried(stages: Sequence[StageTime], tried: StepTimes) -> list[StageTime]:
    """The same stages by a try of the first one's beginning; the other points keep what they are times that."""
    first = stages[0].begin.median

    def point(times: StepTimes) -> StepTimes:
        factor = times.median / first
        return tried.scaled(factor if not 1 / ALIKE < factor < ALIKE else 1.0)

    return [
        StageTime(stage.name, stage.epochs, stage.steps_per_epoch, point(stage.begin), point(stage.end))
        for stage in stages
    ]


def cost_of(time: Mapping[str, Any], cost: Cost, usd_per_hour: float) -> dict[str, Any] | None:
    """US dollars of a time at a price, and the budget they have to come from; None without a price."""
    if not usd_per_hour:
        return None
    dollars = {
        name: None if time[name] is None else time[name] / 3600 * usd_per_hour for name in ("low", "likely", "high")
    }
    return {**dollars, "usd_per_hour": usd_per_hour, "budget": cost.budget_usd}
