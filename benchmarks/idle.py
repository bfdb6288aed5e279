"""What the cockpit takes of a core and sends to the terminal, 80 × 24: ten live runs at rest, and one training.

Idle: ten runs hold their locks and say nothing. Training: the open run logs ten steps a second and ends an epoch every
two seconds.
"""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

from benchmarks.fake_runs import WrittenRun, hold
from benchmarks.first_paint import leet_log
from benchmarks.measure import Measurement
from benchmarks.terminal import COCKPIT, Terminal, leet

RUNS = 10
SETTLE = 3.0
SECONDS = 20.0
AGE = 3600.0
"""Of the runs: in the first minute of ten at once, ten ages would change every second."""
STEP_SECONDS = 0.1
STEPS_AN_EPOCH = 20


def _train(run: WrittenRun, stop: threading.Event) -> None:
    step = 0
    while not stop.wait(STEP_SECONDS):
        run.log_steps(step, step + 1)
        step += 1
        if step % STEPS_AN_EPOCH == 0:
            run.end_epoch(step // STEPS_AN_EPOCH, 1 / (1 + step))


def _cost(terminal: Terminal) -> tuple[float, float]:
    """Share of a core, and bytes a second."""
    terminal.watch(SETTLE)
    before = terminal.processor_seconds()
    written = terminal.watch(SECONDS)
    return (terminal.processor_seconds() - before) / SECONDS, written / SECONDS


def measure() -> list[Measurement]:
    with tempfile.TemporaryDirectory() as home:
        env = {"HOME": home, "COCKPIT_RUNS": f"{home}/runs"}
        runs = [
            WrittenRun(Path(home, "runs"), f"controls-20261127-2014{place:02d}-amber", AGE) for place in range(RUNS)
        ]
        with hold(*runs), Terminal(COCKPIT, env) as terminal:
            terminal.wait("amber")
            core, idle_bytes = _cost(terminal)
            stop = threading.Event()
            engine = threading.Thread(target=_train, args=(runs[-1], stop))
            terminal.press("\r")
            engine.start()
            try:
                training_core, training_bytes = _cost(terminal)
            finally:
                stop.set()
                engine.join()
    with Terminal([leet(), "leet", "run", leet_log(1000)]) as terminal:
        terminal.wait("help")
        their_core, their_bytes = _cost(terminal)
    bytes_note = "sent to the terminal; theirs: an ended run, open"
    training_note = f"{100 * training_core:.1f} % of a core on the run's screen while it trains"

    def measurement(name: str, ours: float, theirs: float, unit: str, reach: str, note: str = "") -> Measurement:
        ratio = theirs / max(ours, 1e-9)
        return Measurement(name=name, ours=ours, theirs=theirs, unit=unit, ratio=ratio, reach=reach, note=note)

    return [
        measurement("idle", 100 * core, 100 * their_core, "% of a core", "ours ≤ 2", training_note),
        measurement("idle_bytes", idle_bytes, their_bytes, "bytes/s", "ours ≤ 1,000", bytes_note),
        measurement("training_bytes", training_bytes, 10_000, "bytes/s", "≥ 1 (10 KB/s)"),
    ]
