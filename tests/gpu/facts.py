"""What this machine's device does with all four projects: `python -P -m tests.gpu.facts [--seconds 200] [--out FILE]`.

One process without pytest. One JSON line after each fact, at once, so that whoever ends it early has what was measured:
`{"fact", "at", "seconds"}` with `value`, or with `error`, or with `skipped` and why. Each fact is guarded, and ended
when its own time or the whole time is up. The ceilings of the device come first. On a machine without a GPU, or with
COCKPIT_GPU_TESTS_ON=cpu, everything that needs none is measured on the CPU. Exit code 1: a fact failed or had no time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import torch

from tests.gpu import fact_ceilings, fact_projects
from tests.gpu.trainers import CONFIGS

SECONDS = 200.0
"""For all facts. With more of them each fact has more too, and twice as much on a CPU."""
LATE = "no time left"
BATCHES = (64, 256, 1024)


class TimeIsUp(Exception):
    """The fact took longer than it may."""


@dataclass(frozen=True)
class Fact:
    name: str
    cap: float
    """Seconds on a GPU."""
    measure: Callable[[], Any]
    needs_gpu: bool = False


class Recorder:
    """Measures facts one after another and writes each down."""

    def __init__(self, seconds: float, out: TextIO | None, device: torch.device) -> None:
        self._began, self._seconds, self._out, self._device = time.monotonic(), seconds, out, device
        self._longer = max(1.0, seconds / SECONDS) * (1 if device.type == "cuda" else 2)
        self.missed: list[str] = []
        """Names of the facts that failed or found no time left."""

    def take(self, fact: Fact) -> None:
        began = time.monotonic()
        left = self._seconds - (began - self._began)
        line: dict[str, Any] = {"fact": fact.name, "at": round(began - self._began, 1)}
        if fact.needs_gpu and self._device.type != "cuda":
            line["skipped"] = "needs a GPU"
        elif left < 1:
            line["skipped"] = LATE
        else:
            line |= self._measured(fact, min(fact.cap * self._longer, left))
            line["seconds"] = round(time.monotonic() - began, 2)
        if "error" in line or line.get("skipped") == LATE:
            self.missed.append(fact.name)
        text = json.dumps(_rounded(line), default=str)
        for stream in filter(None, (sys.__stdout__, self._out)):
            print(text, file=stream, flush=True)

    @staticmethod
    def _measured(fact: Fact, cap: float) -> dict[str, Any]:
        try:
            with _capped(cap), contextlib.redirect_stdout(sys.stderr):
                return {"value": fact.measure()}
        except TimeIsUp:
            return {"error": f"not done within {cap:.0f} s"}
        except Exception as error:  # whatever it is, the next fact is still worth knowing
            traceback.print_exc()
            return {"error": f"{type(error).__name__}: {error}"[:500]}


@contextlib.contextmanager
def _capped(seconds: float) -> Iterator[None]:
    def end(number: int, frame: FrameType | None) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _rounded(value: Any) -> Any:
    """With five digits of each number."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {str(key): _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list | tuple) else value


def facts(device: torch.device, folder: Path) -> Iterator[Fact]:
    """All of them, what matters most first."""
    ceilings, measured = fact_ceilings.Ceilings(device), fact_projects.Projects(device, folder)
    yield Fact("versions", 10, ceilings.versions)
    yield Fact("card", 10, ceilings.card, needs_gpu=True)
    yield Fact("launch, µs", 10, ceilings.launch)
    yield Fact("copy, GB/s", 10, ceilings.copy)
    yield Fact("matrix product, TFLOP/s", 15, ceilings.product)
    yield Fact("attention backends", 10, ceilings.attention)
    for project in CONFIGS:
        yield Fact(f"{project}: made", 20, partial(measured.made, project))
    for project in CONFIGS:
        yield Fact(f"{project}: waits in a step", 20, partial(measured.waits, project))
    yield Fact("controls: ms a step by precision and batch", 45, partial(measured.step_times, "controls", BATCHES))
    yield Fact("controls: kernels", 20, partial(measured.kernels, "controls"))
    for project in CONFIGS:
        if project != "controls":
            yield Fact(f"{project}: ms a step by precision", 15, partial(measured.step_times, project))
            yield Fact(f"{project}: kernels", 15, partial(measured.kernels, project))
    for project in CONFIGS:
        yield Fact(f"{project}: losses against the CPU", 25, partial(measured.parity, project), True)
        yield Fact(f"{project}: a bad step", 15, partial(measured.bad_step, project))
        yield Fact(f"{project}: resumed to the bit", 25, partial(measured.resumed, project))
        yield Fact(f"{project}: evaluation, save", 25, partial(measured.beside, project))
    for project in CONFIGS:
        yield Fact(f"{project}: memory", 15, partial(measured.memory, project), True)
        if project == "controls":
            replayed = partial(measured.replayed, project)
            yield Fact("controls: steps replayed by the engine", 25, replayed, True)
            yield Fact("controls: compiled steps replayed", 60, partial(replayed, "training.compile=true"), True)
        yield Fact(f"{project}: forward and backward as a CUDA graph", 20, partial(measured.graph, project), True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Facts of this machine's device, one JSON line each.")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"for all of them, {SECONDS:.0f} if absent")
    parser.add_argument("--out", type=Path, help="a file that gets the lines too")
    parser.add_argument("--only", default="", help="facts whose name contains this")
    arguments = parser.parse_args()
    asked = os.environ.get("COCKPIT_GPU_TESTS_ON", "cuda" if torch.cuda.is_available() else "cpu")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        out = stack.enter_context(arguments.out.open("w")) if arguments.out else None
        device = fact_ceilings.chosen(asked)
        recorder = Recorder(arguments.seconds, out, device)
        wanted = [fact for fact in facts(device, folder) if arguments.only in fact.name]
        for fact in wanted:
            recorder.take(fact)
    if missed := recorder.missed:
        said = f"{len(missed)} of {len(wanted)} facts failed or had no time left"
        print(f"{said}: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
