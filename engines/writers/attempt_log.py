"""What one attempt logs, followed in its run directory: one step a block of the log, and every epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator

from engines.basics.jsonl import RecordFollower
from engines.contract import events as ev
from engines.contract.events import Epoch, Event, RunStarted
from engines.contract.rundir import RunDirectory
from engines.contract.steps import DATA_WAIT, logged, read_segments
from engines.writers.writer import Values

NO_VALUES = ("step", "attempt", "epoch", "time", DATA_WAIT, "skipped")


class AttemptLog:
    """Gives `(step, time, values)` of what was appended since the last call, epochs after the steps before them."""

    def __init__(self, run: RunDirectory, attempt: int, every: int) -> None:
        self._steps, self._attempt, self._every = run.steps, attempt, every
        self._events: RecordFollower[Event] = RecordFollower(run.events, ev.decoder)
        self._read: dict[int, int] = {}
        """Records read of each segment, by its place."""
        self.resumed_step = 0

    def poll(self) -> Iterator[tuple[int, float, Values]]:
        events = [event for event in self._events.poll() if event.attempt == self._attempt]  # before their steps
        yield from self._step_rows()
        for event in events:
            if isinstance(event, RunStarted):
                self.resumed_step = event.resumed_step
            if isinstance(event, Epoch):
                yield event.step, event.time, _of_epoch(event)

    def _step_rows(self) -> Iterator[tuple[int, float, Values]]:
        for place, (columns, records) in enumerate(read_segments(self._steps)):
            new = records[self._read.get(place, 0) :]
            self._read[place] = len(records)
            mine = new[(new[:, 1] == self._attempt) & ((new[:, 0] + 1) % self._every == 0)]
            there = logged(mine)
            for row, has in zip(mine.tolist(), there.tolist(), strict=True):
                named = dict(zip(columns, row, strict=True))
                told = {name for name, is_there in zip(columns, has, strict=True) if is_there}.difference(NO_VALUES)
                yield int(row[0]) + 1, named["time"], {f"step/{name}": named[name] for name in columns if name in told}


def _of_epoch(event: Epoch) -> Values:
    """What was measured and not finite is a NaN."""
    values = {f"train/{key}": value for key, value in event.train.items()}
    values |= {f"validation/{key}": value for key, value in event.validation.items()}
    values |= {"score": event.score, "lr": event.lr, "epoch": float(event.epoch)}
    values |= {f"weight/{head}": weight for head, weight in event.weights.items()}
    bad = {name.replace(".", "/", 1) for name in event.nonfinite}
    return {
        key: math.nan if value is None else value for key, value in values.items() if value is not None or key in bad
    }
