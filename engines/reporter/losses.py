"""Losses that a script reports and that are not finite: reported once, and again when all are finite."""

from __future__ import annotations

import math
from collections.abc import Mapping

from engines.contract.alerts import NONFINITE
from engines.contract.events import Alert
from engines.contract.metric_names import is_loss


class LossWatch:
    """Knows which losses are not finite; another metric may be undefined without anything being wrong."""

    def __init__(self) -> None:
        self._bad: set[str] = set()

    def look(self, step: int, values: Mapping[str, float]) -> Alert | None:
        """What is to be said of `values`, reported at `step`."""
        losses = {name: value for name, value in values.items() if is_loss(name)}
        before = bool(self._bad)
        fresh = {name: value for name, value in losses.items() if not math.isfinite(value)}
        self._bad = (self._bad - losses.keys()) | fresh.keys()
        if fresh and not before:
            told = ", ".join(f"{name} is {value}" for name, value in fresh.items())
            return Alert(code=NONFINITE, level="error", text=f"step {step}: {told}", step=step)
        if before and not self._bad:
            return Alert(code=NONFINITE, level="info", text="losses are finite again", step=step, over=True)
        return None
