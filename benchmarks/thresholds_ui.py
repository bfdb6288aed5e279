"""The thresholds screen on 1,000,000 frames × 15 controls, in a terminal: from a key to the number it changes.

Held: each key follows when the one before is painted. Now and then: keys at random moments, so that they also meet what
is done in quiet ones, sums over all controls. Both after everything is sorted and resampled, and once while it is not.
Each in wall time and in processor time of the thread that paints: on a busy machine only that one is the screen's own.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fake_runs import WrittenRun
from benchmarks.measure import Measurement
from benchmarks.terminal import COCKPIT, Terminal
from benchmarks.thresholds import frames
from engines.contract.rundir import RunDirectory
from engines.thresholds.review import About, write_review
from projects.controls.sending import Rules
from projects.controls.thresholds import NAMES

ROWS, SESSIONS = 1_000_000, 20
HELD, NOW_AND_THEN = 100, 40
SIZES = ((80, 24), (200, 50))
RIGHT = "\x1b[C"
PROMISED = 50.0
"""Milliseconds from a key to the picture."""
PATIENCE = 1800.0
"""Seconds for resampling all controls: half a minute of processor time, which a busy machine may give only slowly."""
CONFIG = """\
project: controls
data:
  path: recordings
thresholds:
  action: 0.3
  inv: 0.5
  hotbar_min_confidence: 0.3
"""


def measure() -> list[Measurement]:
    measurements = []
    with tempfile.TemporaryDirectory() as home:
        _say("writing the review of a run")
        _reviewed(Path(home, "runs"))
        for size in SIZES:
            measurements += _measure(home, size)
    return measurements


def _say(what: str) -> None:
    """How far it is, on stderr: a busy machine takes minutes."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def _measure(home: str, size: tuple[int, int]) -> list[Measurement]:
    chance, columns, lines = random.Random(0), *size
    _say(f"{columns}x{lines}: opening the screen")
    with Terminal(COCKPIT, {"HOME": home, "COCKPIT_RUNS": f"{home}/runs"}, size=size) as terminal:
        terminal.wait("amber")
        terminal.press("\r")
        terminal.wait("thresholds")  # the footer names the key once the review is found; until then it does nothing
        opened = terminal.press("t")
        first = terminal.wait("pred +") - opened
        at = 300
        spent = 0.0
        times: dict[str, list[float]] = {}
        painting: dict[str, list[float]] = {}
        terminal.wait("resampling")
        for name, number in (("busy", HELD), ("held", HELD), ("now and then", NOW_AND_THEN)):
            if name == "held":
                _say(f"{columns}x{lines}: resampling")
                terminal.wait("changed", patience=PATIENCE)
                terminal.watch(2.0)
                spent = -terminal.processor_seconds()
            _say(f"{columns}x{lines}: {number} keys, {name}")
            for _ in range(number):
                if name == "now and then":
                    terminal.watch(chance.uniform(0.2, 1.2))
                at += 1
                worked = terminal.main_thread_seconds()
                pressed = terminal.press(RIGHT)
                times.setdefault(name, []).append(1000 * (terminal.wait(f"0\\.{at}") - pressed))
                painting.setdefault(name, []).append(1000 * (terminal.main_thread_seconds() - worked))
            if name == "held":
                spent += terminal.processor_seconds()
        held = terminal.resident()
    found = []
    for name, values in times.items():
        found.append(_measurement(f"thresholds_ui {columns}x{lines}, {name}", values))
        found.append(_measurement(f"thresholds_ui {columns}x{lines}, {name}, main thread", painting[name]))
    shown = Measurement(
        name=f"thresholds_ui {columns}x{lines}, first", ours=first, theirs=first, unit="s", ratio=1.0,
        reach="—", note="ours alone: from opening the screen to the first control's numbers and curves",
    )  # fmt: skip
    processor = Measurement(
        name=f"thresholds_ui {columns}x{lines}, held, CPU", ours=1000 * spent / HELD, theirs=PROMISED / 2, unit="ms",
        ratio=PROMISED / 2 / (1000 * spent / HELD), reach="≥ 1", note="per key, of all threads, whatever else runs",
    )  # fmt: skip
    memory = Measurement(
        name=f"thresholds_ui {columns}x{lines}, memory", ours=held, theirs=held, unit="MB", ratio=1.0,
        reach="—", note="ours alone: resident in the end, of the whole program",
    )  # fmt: skip
    return [*found, processor, shown, memory]


def _measurement(name: str, found: list[float]) -> Measurement:
    found.sort()
    slow = found[int(0.95 * len(found)) - 1]
    note = f"p95 of {len(found)} moves; median {statistics.median(found):.1f} ms, slowest {found[-1]:.1f} ms"
    return Measurement(name=name, ours=slow, theirs=PROMISED, unit="ms", ratio=PROMISED / slow, reach="≥ 1", note=note)


def _reviewed(folder: Path) -> RunDirectory:
    """A run with such a review, tuned as it is sent, and nothing exported."""
    written = WrittenRun(folder, "controls-20261127-201400-amber")
    written.run.config.write_text(CONFIG)
    data = frames(ROWS)
    nothing, rules = np.zeros(ROWS, np.bool_), Rules.of(0.05, 0.0, {})
    arrays: dict[str, NDArray[Any]] = {
        "names": np.array(NAMES),
        "scores": data.scores,
        "targets": data.targets,
        "masks": np.ones_like(data.targets),
        "idle": data.idle,
        "groups": np.arange(ROWS) * SESSIONS // ROWS,
        "times": np.arange(ROWS) / 20,
        "margins": rules.margins,
        "holds": rules.holds,
        "hotbar_confidence": data.scores[:, 0],
        "hotbar_correct": data.targets[:, 0],
        "hotbar_mask": nothing,
    }
    write_review(written.run.review, arrays, About(checkpoint="best.pt", step=20, epoch=2, score=0.5))
    return written.run
