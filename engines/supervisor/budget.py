"""What a run may cost, and what its attempts have cost so far."""

from __future__ import annotations

import contextlib
import time

from engines.basics.errors import DataError
from engines.contract.rundir import RunDirectory
from engines.runs.spending import spans_of, usd_spent
from engines.runs.state import RunReader


class Budget:
    """What a run may cost, in US dollars; with no price or no budget it may cost anything."""

    def __init__(self, run: RunDirectory, usd: float, usd_per_hour: float) -> None:
        self._run = run
        self.usd, self.usd_per_hour = usd, usd_per_hour

    @property
    def seconds_left(self) -> float | None:
        """Until it is spent; None without one."""
        if not self.usd or not self.usd_per_hour:
            return None
        return max(0.0, self.usd - self.spent_before()) / self.usd_per_hour * 3600

    def spent_before(self) -> float:
        """US dollars that earlier attempts cost; an attempt that was lost counts to its last event."""
        last_event = {event.attempt: event.time for event in RunReader(self._run).poll()}
        attempts = []
        for number in self._run.attempt_numbers():
            with contextlib.suppress(DataError):  # a damaged record must not keep the run from going on
                attempts.append(self._run.attempt(number))
        return usd_spent(spans_of(attempts, last_event, live=False), time.time()) or 0.0

    @property
    def sentence(self) -> str:
        """How a run ends that has spent it."""
        return f"the budget of ${self.usd:,g} is spent"
