"""A run of 1,000,000 logged steps, four metrics each: from starting the program to its charts, against W&B LEET.

Ours starts in the list of runs; the driver opens the run and its charts as soon as it may. LEET starts on the run. It
shows a chart of the first rows early and goes on reading, so two moments are measured: when some chart is there, and
when the whole run is in it. Memory is of all processes of a side, once the whole run is shown.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.fake_runs import WrittenRun
from benchmarks.first_paint import leet_log
from benchmarks.measure import Measurement
from benchmarks.terminal import COCKPIT, Terminal, cache, leet

STEPS = 1_000_000
ROUNDS = 3
SIZE = (120, 36)
BRAILLE = "\u2809|\u2812|\u2824|\u28c0"
"""Of what lines are drawn with, the signs that every gentle slope has."""
BLOCK = "\u28ff"
"""What the noisy chart is full of. Its lines change with the smoothing, while a smooth curve stays what it is."""
CHARTS = "3"
KEYS = {"smooth": ("m", BLOCK), "zoom": ("+", BRAILLE), "reset": ("0", BRAILLE)}
"""Key and what is drawn by it: the first with all four charts on the screen, the others with one of them enlarged."""


class Opened(NamedTuple):
    first: float
    whole: float
    memory: float
    keys: tuple[float, ...] = ()


def _folder() -> Path:
    """The run, written once."""
    folder = cache() / "open_run"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        run = WrittenRun(folder, "controls-20261127-201400-amber")
        for start in range(0, STEPS, 100_000):
            run.log_steps(start, start + 100_000)
        run.finish(STEPS)
        (folder / "complete").touch()
    return folder


def _ours() -> Opened:
    with (
        tempfile.TemporaryDirectory() as home,  # a new one, since the smoothing is kept there
        Terminal(COCKPIT, {"COCKPIT_RUNS": str(_folder()), "HOME": home}, size=SIZE) as terminal,
    ):
        terminal.wait("amber")
        terminal.press("\r")
        first = terminal.wait(BRAILLE)
        terminal.press(CHARTS)
        whole = terminal.wait_all("accuracy", "grad_norm", BRAILLE)[-1]
        terminal.watch(2.0)
        memory = terminal.resident()
        keys = []
        for key, drawn in KEYS.values():
            keys.append(-terminal.press(key) + terminal.wait(drawn, patience=20))
            terminal.watch(1.0)
            if key == "m":
                terminal.press("\r")
                terminal.watch(1.0)
        return Opened(first - terminal.started, whole - terminal.started, memory, tuple(keys))


def _theirs(log: Path) -> Opened:
    with Terminal([leet(), "leet", "run", log], size=SIZE) as terminal:
        first = terminal.wait(BRAILLE)
        whole = terminal.wait("Finished", patience=600)
        terminal.watch(1.0)
        return Opened(first - terminal.started, whole - terminal.started, terminal.resident())


def measure() -> list[Measurement]:
    log = leet_log(STEPS)
    _folder()
    _ours()  # warms
    pairs = [(_ours(), _theirs(log)) for _ in range(ROUNDS)]
    ours, theirs = zip(*pairs, strict=True)

    def compared(name: str, field: str, unit: str, reach: str, note: str = "") -> Measurement:
        mine, other = (statistics.median(getattr(one, field) for one in side) for side in (ours, theirs))
        return Measurement(name=name, ours=mine, theirs=other, unit=unit, ratio=other / mine, reach=reach, note=note)

    slowest = statistics.median(max(one.keys) for one in ours)
    spent = zip(KEYS, (statistics.median(keys) for keys in zip(*(one.keys for one in ours), strict=True)), strict=True)
    return [
        compared("open_run", "whole", "s", "≥ 4", "to charts of the whole run"),
        compared("open_run_some_chart", "first", "s", "—", "LEET's is of the first rows"),
        compared("open_run_memory", "memory", "MB", "≥ 1"),
        Measurement(
            name="open_run_key", ours=slowest, theirs=0.1, unit="s", ratio=0.1 / slowest, reach="≥ 1 (100 ms)",
            note="key to repaint: " + ", ".join(f"{name} {1000 * seconds:.0f} ms" for name, seconds in spent),
        ),
    ]  # fmt: skip
