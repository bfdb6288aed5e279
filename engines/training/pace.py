"""How fast this rank and the others step, written down by rank 0 for whoever watches."""

from __future__ import annotations

import contextlib
import platform
import time

import psutil
import torch

from engines.contract.rank_loads import RankLoad, RankLoads, write_loads
from engines.contract.rundir import RunDirectory
from engines.training.ranks import Ranks

SECONDS = 5.0


class Pace:
    """Measures from one report to the next. All ranks report at the same step."""

    def __init__(self, run: RunDirectory, attempt: int, ranks: Ranks, device: torch.device) -> None:
        self._run, self._attempt, self._ranks, self._device = run, attempt, ranks, device
        self._began, self._step = time.perf_counter(), 0

    @property
    def due(self) -> bool:
        """Whether the last report is old."""
        return time.perf_counter() - self._began > SECONDS

    def begin(self, step: int) -> None:
        """Measure from `step` on: what came before it (an evaluation, a pause) is no step."""
        self._began, self._step = time.perf_counter(), step
        self._ranks.take_waited()

    def report(self, step: int) -> None:
        """Of the steps since the last report or beginning, to rank 0, which writes it down."""
        steps = step - self._step
        waited, sums = self._ranks.take_waited()
        if steps:
            seconds = (time.perf_counter() - self._began) / steps
            wait = waited / sums if self._device.type == "cuda" and sums else waited / steps
            loads = self._ranks.gathered(self._load(max(0.0, seconds - wait), wait))
            if self._ranks.first:
                with contextlib.suppress(OSError):  # it is written again soon
                    write_loads(self._run, RankLoads(self._attempt, loads))
        self.begin(step)

    def _load(self, step_seconds: float, wait_seconds: float) -> RankLoad:
        if self._device.type == "cuda":
            memory = torch.cuda.memory_reserved(self._device)
        else:
            memory = psutil.Process().memory_info().rss
        return RankLoad(
            self._ranks.number, platform.node(), str(self._device), step_seconds, wait_seconds, memory
        )  # fmt: skip
