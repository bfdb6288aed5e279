"""From an event appended to a run's log to its number on the terminal (80 × 24), against the times that are promised.

The moments of appending are random, so that they meet every phase of the clocks that bring the screen up to date.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

from benchmarks.fake_runs import EPOCHS, WrittenRun, hold
from benchmarks.measure import Measurement
from benchmarks.terminal import COCKPIT, Terminal

SAMPLES = 100
LINE_SECONDS, TABLE_SECONDS = 0.35, 1.2


def measure() -> list[Measurement]:
    chance = random.Random(0)
    line, table = [], []
    with tempfile.TemporaryDirectory() as home:
        run = WrittenRun(Path(home, "runs"), "controls-20261127-201400-amber")
        env = {"HOME": home, "COCKPIT_RUNS": f"{home}/runs"}
        with hold(run), Terminal(COCKPIT, env) as terminal:
            terminal.wait("amber")
            terminal.press("\r")
            terminal.watch(3.0)
            for number in range(1, SAMPLES + 1):
                terminal.watch(chance.uniform(1.0, 2.0))
                appended = time.perf_counter()
                run.end_epoch(number, 1 + number / 1000)
                shown = (f"epoch {number}/{EPOCHS:,}", f"{1 + number / 1000:.3f}")
                in_line, in_table = terminal.wait_all(*shown, patience=20)
                line.append(in_line - appended)
                table.append(in_table - appended)

    def measurement(name: str, found: list[float], promised: float) -> Measurement:
        found.sort()
        slow = found[int(0.99 * len(found)) - 1]
        return Measurement(
            name=name, ours=slow, theirs=promised, unit="s, p99", ratio=promised / slow, reach="≥ 1",
            note=f"median {found[len(found) // 2]:.2f} s, slowest {found[-1]:.2f} s of {len(found)}",
        )  # fmt: skip

    return [
        measurement("follow_latency_line", line, LINE_SECONDS),
        measurement("follow_latency_table", table, TABLE_SECONDS),
    ]
