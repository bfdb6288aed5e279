"""Whether a training hangs: no sign of life for much longer than its phase usually takes between two."""

from __future__ import annotations

from collections import defaultdict, deque
from statistics import median

from engines.basics.amounts import duration
from engines.contract.alerts import STALL, Finding

LEAST_SECONDS = {
    "loading": 1800.0, "compiling": 1800.0, "training": 120.0, "evaluating": 900.0, "saving": 600.0
}  # fmt: skip
"""Silence that is never told, by phase; of the phases that are not here (paused, queued) none is."""
UNKNOWN_SECONDS = 1800.0
"""The same while nothing is known of the phase: the first block of steps, the first evaluation may take long."""
USUAL, LONGEST = 10.0, 3.0
"""Times the median silence of a phase, and times the longest of the recent ones: the larger of both is waited for."""
KEPT = 20
TOLD_USUAL = 15.0
"""A shorter usual silence is that of who looks, not of the training."""


class StallRule:
    """Fed a few times a minute; counts only time in which it was itself running, so a machine asleep is no stall."""

    def __init__(self, least: float = 0.0) -> None:
        """No silence shorter than `least` seconds is told, whatever the phase and what is usual in it."""
        self._least = least
        self._silences: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=KEPT))
        self._phase = ""
        self._sign: object = None
        self.silence = 0.0
        """Seconds without a sign of life."""

    def feed(self, phase: str, sign: object, seconds: float) -> Finding | None:
        """`seconds` have passed in which the training was in `phase`; `sign` changes with every step and event."""
        if sign == self._sign and phase == self._phase:
            self.silence += seconds
        else:
            if self._phase in LEAST_SECONDS and self.silence < self.patience(self._phase):  # a stall is not usual
                self._silences[self._phase].append(self.silence + seconds)
            self._phase, self._sign, self.silence = phase, sign, 0.0
        if phase not in LEAST_SECONDS or self.silence < self.patience(phase):
            return None
        usual = self._silences[phase]
        beside = f", where {duration(median(usual))} is usual" if usual and median(usual) >= TOLD_USUAL else ""
        return Finding(STALL, f"no sign of life for {duration(self.silence)} in {phase}{beside}", "error")

    def patience(self, phase: str) -> float:
        """Seconds of silence that are waited for."""
        usual = self._silences[phase]
        learned = max(USUAL * median(usual), LONGEST * max(usual)) if usual else UNKNOWN_SECONDS
        return max(self._least, LEAST_SECONDS[phase], learned)
