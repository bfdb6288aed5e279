"""From starting the program to its first picture, warm, ten runs in the folder; against W&B LEET and an empty app.

The picture is there when the last words of its last line have been written. Starts alternate. Then the same until a
thousand runs of twenty epochs are counted, against the second that is promised from the first picture on.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fake_runs import WrittenRun
from benchmarks.measure import Measurement
from benchmarks.terminal import COCKPIT, Terminal, cache, leet

ROUNDS = 11
RUNS, MANY_RUNS = 10, 1000
MANY_ROUNDS, MANY_SECONDS = 5, 1.0
EMPTY = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("quit")
Empty().run()
"""
"""What Textual takes for itself."""


def leet_log(steps: int) -> Path:
    """A log of so many steps, made once by the interpreter beside `wandb`."""
    folder = cache() / f"offline-run-20261127_201400-{steps}"
    log = folder / f"run-{steps}.wandb"
    if not log.exists():
        folder.mkdir(exist_ok=True)
        writer = Path(__file__).with_name("leet_log.py")
        subprocess.run([leet().with_name("python"), writer, str(steps), log.with_suffix(".part")], check=True)
        log.with_suffix(".part").rename(log)
    return log


def measure() -> list[Measurement]:
    log = leet_log(1000)
    with tempfile.TemporaryDirectory() as home:
        env = {"HOME": home, "COCKPIT_RUNS": f"{home}/runs"}
        _write_runs(Path(home, "runs"), RUNS, epochs=1)
        sides: dict[str, tuple[Sequence[str | Path], str]] = {
            "ours": (COCKPIT, "quit"),
            "leet": ([leet(), "leet", "run", log], "help"),
            "empty": ([sys.executable, "-c", EMPTY], "quit"),
        }
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        memory: dict[str, float] = {}
        for _ in range(ROUNDS + 1):
            for name, (command, last_words) in sides.items():
                with Terminal(command, env) as terminal:
                    seconds[name].append(terminal.wait(last_words) - terminal.started)
                    terminal.watch(1.0)
                    memory[name] = terminal.resident()
    median = {name: statistics.median(found[1:]) for name, found in seconds.items()}  # the first start warms
    note = f"an empty Textual app takes {median['empty']:.2f} s and {memory['empty']:.0f} MB"
    return [
        Measurement(
            name="first_paint", ours=median["ours"], theirs=median["leet"], unit="s",
            ratio=median["leet"] / median["ours"], reach="≥ 1, ours ≤ 0.7 s", note=note,
        ),
        Measurement(
            name="first_paint_memory", ours=memory["ours"], theirs=memory["leet"], unit="MB",
            ratio=memory["leet"] / memory["ours"], reach="≥ 1",
        ),
        _many_runs(),
    ]  # fmt: skip


def _many_runs() -> Measurement:
    seconds = []
    with tempfile.TemporaryDirectory() as home:
        _write_runs(Path(home, "runs"), MANY_RUNS, epochs=20)
        for _ in range(MANY_ROUNDS + 1):
            with Terminal(COCKPIT, {"HOME": home, "COCKPIT_RUNS": f"{home}/runs"}) as terminal:
                painted = terminal.wait("quit")
                seconds.append((terminal.wait(f"{MANY_RUNS:,} done") - painted, painted - terminal.started))
    after, before = (statistics.median(column) for column in zip(*seconds[1:], strict=True))
    return Measurement(
        name="first_paint_1000_runs", ours=after, theirs=MANY_SECONDS, unit="s", ratio=MANY_SECONDS / after,
        reach="≥ 1", note=f"from the first picture to all runs; {before + after:.2f} s from the start",
    )  # fmt: skip


def _write_runs(folder: Path, count: int, *, epochs: int) -> None:
    for place in range(count):
        run = WrittenRun(folder, f"controls-20261127-{200000 + place}-amber")
        for epoch in range(1, epochs + 1):
            run.end_epoch(epoch, 0.5)
        run.finish(1000)
