"""Looks at a training from beside it and tells, as `alert` events, what goes wrong; each once until it is over.

A thread of the supervisor: it is there when nobody watches and while the engine hangs, and it costs the loop nothing,
since everything it looks at is in the run directory. A script that reports itself has it as a thread of its own.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import get_args

from engines.contract import alerts
from engines.contract.alerts import Finding
from engines.contract.commands import Edit
from engines.contract.events import Alert, Checkpoint, CommandAnswer, Epoch, Event, EventWriter, Phase, RunStarted
from engines.contract.rundir import RunDirectory
from engines.runs.history import History
from engines.runs.stall import StallRule
from engines.runs.state import RunReader
from engines.supervisor import notify

SECONDS = 5.0
ROWS = 20_000
"""Steps that are looked at, the newest."""
WAIT_WINDOW = 120.0
"""Seconds of steps over which waiting for data is measured."""
RELIEF = 1.5
"""Times the space that is too little from which on there is enough again."""
OVER = {
    alerts.PLATEAU: "no longer a plateau: the score improved, or a setting changed",
    alerts.OVERFIT: "no longer overfitting: losses or score improved, or a setting changed",
    alerts.GRADIENT: "the gradient norm is back to normal",
    alerts.DATA_WAIT: "data loading is fast enough again",
    alerts.STALL: "signs of life again",
    alerts.DISK: "the run's disk has space again",
    alerts.EXPLOIT: "the measured value rises again, or a setting changed",
    alerts.BUDGET: "the budget was raised",
}


class Watchdog(threading.Thread):
    """`spent` gives the US dollars spent so far, over all attempts. Nothing that goes wrong here touches the run.

    `proxies` are those of the project's spec. `on_stall` is called with the text of a stall's alert.

    `least_silence`: seconds without a sign of life that are never reported; 0 leaves it to the phase.
    """

    def __init__(
        self, run: RunDirectory, attempt: int, *, budget: float = 0.0, usd_per_hour: float = 0.0,
        spent: Callable[[], float] = lambda: 0.0, least_silence: float = 0.0,
        proxies: Mapping[str, str] | None = None, on_stall: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name="watchdog", daemon=True)
        self._run, self._attempt = run, attempt
        self._budget, self._price, self._spent = budget, usd_per_hour, spent
        self._reader = RunReader(run)
        self._events = EventWriter(run.events, attempt)
        self._stall = StallRule(least_silence)
        self._proxies = proxies or {}
        self._on_stall = on_stall
        self._signs = 0
        """Events that show the engine at work; that it hears commands is no such sign."""
        self._usual_norm: float | None = None
        self._stopping = threading.Event()
        self._warned = False

    def stop(self) -> None:
        """End it, when what was reported last has been posted or has had its time."""
        self._stopping.set()
        self.join(notify.SECONDS + 1)

    def run(self) -> None:
        last = time.monotonic()
        while not self._stopping.wait(SECONDS):
            now = time.monotonic()
            # a machine that slept was not watched: only as much of a gap counts as a busy one leaves
            self._guarded(partial(self.look, min(now - last, 2 * SECONDS)))
            last = now
        self._guarded(self._take_news)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # a disk may be full, files may be gone: the training goes on
            if not self._warned:
                print(f"The watchdog is not running: {error!r}", file=sys.stderr, flush=True)
            self._warned = True

    def look(self, passed: float) -> None:
        """Look once, `passed` seconds after the last time, and record what is new or over. Raises OSError."""
        self._take_news()
        history = self._reader.history
        standing = history.standing
        found = {finding.code: finding for finding in self._findings(history, passed) if finding is not None}
        step = self._newest_step(history)
        for code, finding in found.items():
            if code not in standing:
                self._events.write(Alert(code=code, level=finding.level, text=finding.text, step=step))
                if code == alerts.STALL and self._on_stall is not None:
                    self._on_stall(finding.text)
        for code in OVER.keys() & standing.keys() - found.keys():
            self._events.write(Alert(code=code, level="info", text=OVER[code], step=step, over=True))

    def _take_news(self) -> None:
        """Read the events and post what alerts there are, the engine's own too."""
        for event in self._reader.poll():
            if event.attempt != self._attempt:
                continue
            self._signs += _is_sign(event)
            if isinstance(event, Alert) and event.level != "info":
                notify.post(self._run.info, event.code, event.level, event.text, event.step)

    def _findings(self, history: History, passed: float) -> Iterator[Finding | None]:
        phase = history.phase
        told = history.standing
        if phase is not None and phase.attempt == self._attempt:
            yield self._stall.feed(phase.phase, (self._signs, self._step_bytes()), passed)
        change = _last_change(history)
        rows = history.of_stage
        tried = sum(row.step > change for row in rows)
        yield alerts.plateau(rows, tried, told=alerts.PLATEAU in told)
        alike = [row for row in rows if row.weights == rows[-1].weights]
        yield alerts.overfit(alike, tried, told=alerts.OVERFIT in told)
        changed = [row for row in rows if row.step > change]
        yield alerts.exploit(changed, self._proxies, told=alerts.EXPLOIT in told)
        yield from self._of_steps(change, told)
        free = shutil.disk_usage(self._run.path).free / (RELIEF if alerts.DISK in told else 1)
        yield alerts.disk_low(int(free), history.checkpoints[-1].size if history.checkpoints else 0)
        yield alerts.budget_near(self._spent(), self._budget, self._price)

    def _of_steps(self, change: int, told: Collection[str]) -> Iterator[Finding | None]:
        """What the newest steps of this attempt since `change` say."""
        from engines.contract import step_alerts  # numpy, not before the engine has had its start
        from engines.contract.steps import DATA_WAIT, read_segments

        segments = read_segments(self._run.steps)
        if not segments:
            return
        columns, records = segments[-1]
        newest = records[-ROWS:]
        newest = newest[(newest[:, 1] == self._attempt) & (newest[:, 0] >= change)]
        if len(newest) and "grad_norm" in columns:
            norms = newest[:, columns.index("grad_norm")]
            if alerts.GRADIENT not in told:
                self._usual_norm = step_alerts.usual_norm(norms)
            yield step_alerts.exploding(norms, self._usual_norm, told=alerts.GRADIENT in told)
        if len(newest) and {"time", DATA_WAIT} <= set(columns):
            times, waits = newest[:, columns.index("time")], newest[:, columns.index(DATA_WAIT)]
            recent = times > times[-1] - WAIT_WINDOW
            yield step_alerts.starving(times[recent], waits[recent], told=alerts.DATA_WAIT in told)

    def _step_bytes(self) -> int:
        with contextlib.suppress(OSError):
            return sum(file.stat().st_size for file in self._run.steps.glob("*.f64"))
        return 0

    def _newest_step(self, history: History) -> int:
        return max(history.newest.step if history.newest else 0, history.phase.step if history.phase else 0)


def _is_sign(event: Event) -> bool:
    answered = isinstance(event, CommandAnswer) and event.state != "seen"
    return answered or isinstance(event, RunStarted | Phase | Epoch | Checkpoint)


def _last_change(history: History) -> int:
    """The step of the newest start, stage or edit: what the training did before says little of what it does since."""
    edits = [answer.step for answer in history.applied() if isinstance(answer.command, get_args(Edit))]
    stages = [alert.step for alert in history.alerts if alert.code == "stage"]
    begun = history.started.resumed_step if history.started else 0
    return max([begun, *edits, *stages])
