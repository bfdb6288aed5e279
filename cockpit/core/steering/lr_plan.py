"""The learning-rate schedule that a run is still to go through, as its config and its edits say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cockpit.core.series import Floats
from engines.contract.schedule import learning_rate

POINTS = 400
"""Of a curve, at most."""


def planned(
    training: Mapping[str, Any], epochs: int, steps_per_epoch: int, *, scale: float = 1.0, from_epoch: float = 0.0
) -> tuple[Floats, Floats]:
    """Epochs done and the rate of the step there, two `(n,)` arrays, from `from_epoch` to the end.

    `training` is the section of the config; stages are taken to end where they are planned to.
    """
    size = 1 / max(steps_per_epoch, 1)
    first = round(from_epoch / size)
    count = max(1, round(epochs / size))
    places = np.unique(np.linspace(min(first, count - 1), count - 1, POINTS).round()) * size
    parts = _parts(training, epochs)
    rates = []
    for place in places:
        begin, length, peak = next(part for part in reversed(parts) if part[0] <= place + size / 2)
        rates.append(
            learning_rate(
                float(place) - begin, step_size=size, total=length, warmup=float(training.get("warmup_epochs", 0)),
                peak=peak, least=float(training.get("min_lr", 0)),
            )
        )  # fmt: skip
    return places, np.array(rates) * scale


def _parts(training: Mapping[str, Any], epochs: int) -> list[tuple[float, int, float]]:
    """Where each schedule begins, how long it is and its peak: a stage may begin a new one."""
    begins, at = [(0, float((training.get("stages") or [{}])[0].get("lr") or training["lr"]))], 0
    for index, stage in enumerate(training.get("stages") or []):
        if index and stage.get("restart_schedule", True) and at < epochs:
            begins.append((at, float(stage.get("lr") or training["lr"])))
        if stage.get("epochs") is None:
            break
        at += int(stage["epochs"])
    last = min(at, epochs) if _all_have_epochs(training) else epochs
    ends = [*(begin for begin, _ in begins[1:]), max(last, 1)]
    return [(float(begin), max(1, end - begin), peak) for (begin, peak), end in zip(begins, ends, strict=True)]


def _all_have_epochs(training: Mapping[str, Any]) -> bool:
    stages = training.get("stages") or []
    return bool(stages) and all(stage.get("epochs") is not None for stage in stages)
