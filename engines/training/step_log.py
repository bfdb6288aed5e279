"""Every step's numbers, kept on the device and brought over together: one transfer when logging is due."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from engines.contract.alerts import NONFINITE
from engines.contract.events import Alert
from engines.contract.rundir import RunDirectory
from engines.contract.steps import ABSENT, DATA_WAIT, StepWriter
from engines.runtime.room import Room
from engines.training.clock import Clock, Moment
from engines.training.sums import EpochSums

HOST_COLUMNS = ("epoch", "time", "lr", DATA_WAIT)
ORDINARY_OVERFLOWS = 16
"""Halvings of the first loss scale, 2**16, that end at no scale at all."""


class StepLog:
    """Logs rows of device numbers, as `TrainStep` gives them, and adds them to the sums of the epoch."""

    def __init__(
        self,
        run: RunDirectory,
        room: Room,
        heads: Sequence[str],
        sums: EpochSums,
        every: int,
        *,
        scaled: bool = False,
    ) -> None:
        columns = [*HOST_COLUMNS, "loss", *heads, "grad_norm", "skipped"]
        self._writer = StepWriter(run.steps, columns) if room.writes else None
        self._room = room
        self._heads, self._sums = list(heads), sums
        self._every = every
        self._rows: list[Tensor] = []
        self._host: list[tuple[float, ...]] = []
        self._waits: list[tuple[Moment, Moment]] = []
        self._bad_before = False
        self._scaled = scaled

    @property
    def due(self) -> bool:
        """Whether as many steps as `every` says are waiting to be written."""
        return len(self._host) == self._every

    def add(self, row: Tensor, *, step: int, epoch: int, lr: float, data_wait: tuple[Moment, Moment]) -> None:
        """Keep one step's `row: (2 heads + 3,)` on the device; nothing is transferred. `data_wait`: its ends."""
        self._rows.append(row)
        self._host.append((step, self._room.attempt, epoch, time.time(), lr))
        self._waits.append(data_wait)

    def flush(self, bad_steps: int) -> int:
        """Write what was gathered. Gives the number of non-finite steps in a row, `bad_steps` being those before."""
        if not self._host:
            return bad_steps
        names = len(self._heads)
        counts, totals, rest = np.split(torch.stack(self._rows).cpu().numpy(), [names, 2 * names], axis=1)
        losses, skips = rest[:, 0], rest[:, -1] != 0
        means = (totals / np.where(counts > 0, counts, 1)).astype(np.float64)
        means[counts == 0] = ABSENT  # a head that is off, or of which the batch has nothing, has no loss
        waits = np.array([[Clock.seconds(*wait)] for wait in self._waits])
        rows = np.column_stack([np.array(self._host), waits, losses, means, rest[:, 1:]])
        if self._writer is not None:
            self._room.when_possible(partial(self._writer.append, rows))
        self._sums.add(totals, counts, losses, skips)
        for skipped in skips:
            bad_steps = bad_steps + 1 if skipped else 0
        self._alert(losses, skips, bad_steps)
        self._rows.clear()
        self._host.clear()
        self._waits.clear()
        return bad_steps

    def _alert(self, losses: np.ndarray, skips: np.ndarray, bad_steps: int) -> None:
        """Report the first non-finite step of a series, once. A loss scale that settles makes gradients overflow."""
        ordinary = self._scaled and bad_steps < ORDINARY_OVERFLOWS
        skipped = np.flatnonzero(skips & ~np.isfinite(losses) if ordinary else skips)
        if len(skipped) and not self._bad_before:
            step, _, epoch, *_ = self._host[int(skipped[0])]
            loss = losses[skipped[0]]
            what = f"the loss is {loss}" if not math.isfinite(loss) else "the gradient is not finite"
            text = f"step {step:.0f} of epoch {epoch:.0f} was skipped: {what}; stop the run or lower the learning rate"
            self._room.write(Alert(code=NONFINITE, level="error", text=text, step=int(step)))
            self._bad_before = True
        if self._bad_before and not bad_steps:
            text = "losses and gradients are finite again"
            self._room.write(Alert(code=NONFINITE, level="info", text=text, step=int(self._host[-1][0]), over=True))
            self._bad_before = False
