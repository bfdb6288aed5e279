"""From a key in a terminal (80 × 24) to the step of a live session that hears it, at 25 ms a step."""

from __future__ import annotations

import multiprocessing
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from multiprocessing.queues import Queue
from pathlib import Path

from benchmarks.fake_runs import WrittenRun, hold
from benchmarks.measure import Measurement
from benchmarks.terminal import COCKPIT, Terminal
from engines.contract.scenes import Action, Line, Press, Scene, View
from engines.tasks import Table
from engines.tasks.live import play_live

SAMPLES = 60
STEP_SECONDS = 0.025
HEARD_SECONDS = 0.2
RUN = "controls-20261127-201400-amber"


class Slow:
    """Steps that compute for `STEP_SECONDS`; says when each press was heard."""

    rate, speeds, speed = 60.0, (1.0,), 1.0
    viewers = ("p1",)
    controls = (Action("go", "g", "go"),)
    actions = ()

    def __init__(self, heard: Queue[float]) -> None:
        self._heard = heard

    def begin(self) -> tuple[int, int]:
        return 0, 0

    def step(self, state: tuple[int, int], presses: Sequence[Press], viewers: Sequence[str]) -> tuple[int, int]:
        began = time.perf_counter()
        for _ in presses:
            self._heard.put(began)
        while time.perf_counter() < began + STEP_SECONDS:
            pass
        return state[0] + 1, state[1] + len(presses)

    def act(self, press: Press, tape: Sequence[tuple[int, int]]) -> None: ...

    def scene(self, state: tuple[int, int]) -> Scene:
        bar = Line([(0, 0), (state[0] % 60, 10)], "first")
        return Scene(title="keys", note=f"heard {state[1]}.", view=View((0, 0), (60, 10), [bar]))


class Context:
    """An `InteractiveContext` that nobody stops."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def check(self) -> None: ...

    def progress(self, done: int, total: int, unit: str) -> None: ...

    def log(self, text: str) -> None: ...

    def report(self, tables: Mapping[str, Table]) -> None: ...


def _play(folder: Path, heard: Queue[float]) -> None:
    play_live(Slow(heard), Context(folder), idle_minutes=1.0)


def measure() -> list[Measurement]:
    chance = random.Random(0)
    spawn = multiprocessing.get_context("spawn")
    heard: Queue[float] = spawn.Queue()
    until_heard = []
    with tempfile.TemporaryDirectory() as home:
        written = WrittenRun(Path(home, "runs"), RUN)
        info = written.run.info
        info.kind = "task"
        written.run.write_info(info)
        engine = spawn.Process(target=_play, args=(written.run.path, heard), daemon=True)
        engine.start()
        while not (written.run.path / "play.sock").exists():
            time.sleep(0.05)
        with (
            hold(written),
            Terminal((*COCKPIT, "play", RUN), {"HOME": home, "COCKPIT_RUNS": f"{home}/runs"}) as terminal,
        ):
            terminal.wait("heard 0")
            terminal.press(" ")
            terminal.watch(3.0)
            for _ in range(SAMPLES):
                terminal.watch(chance.uniform(0.2, 0.6))
                pressed = terminal.press("g")
                until_heard.append(heard.get(timeout=20) - pressed)
        engine.terminate()
        engine.join()
    until_heard.sort()
    slow, middle = until_heard[int(0.99 * SAMPLES) - 1], SAMPLES // 2
    return [
        Measurement(
            name="live_keys_heard", ours=slow, theirs=HEARD_SECONDS, unit="s, p99", ratio=HEARD_SECONDS / slow,
            reach="≥ 1",
            note=f"median {until_heard[middle] * 1e3:.0f} ms, slowest {until_heard[-1] * 1e3:.0f} ms of {SAMPLES}",
        )
    ]  # fmt: skip
