"""Tests on a GPU, with the real project and real files: `./test -m gpu`, or `sh scripts/gpu_check.sh`.

Without a GPU they are skipped, but for what proves the tests themselves: that runs on the CPU too, small. With
COCKPIT_GPU_TESTS_ON=cpu all of them run on the CPU, as far as that has what they ask about.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from engines.host.machine import Gpu, LocalMachine
from projects.controls.demo.task import make
from projects.controls.recordings import write_recording
from tests.gpu.trainers import ROOT, InProcess, Quiet
from tests.projects.controls.sessions import random_session

DEVICE = os.environ.get("COCKPIT_GPU_TESTS_ON", "cuda")
MISSING = "torch sees no GPU here" if DEVICE == "cuda" and not torch.cuda.is_available() else ""
ON_GPU = (pytest.mark.gpu, pytest.mark.skipif(bool(MISSING), reason=MISSING))
BOTH = [pytest.param(DEVICE, marks=ON_GPU), *["cpu"] * (DEVICE != "cpu")]
"""For what is quick enough to run in every check."""
needs_driver = pytest.mark.skipif(DEVICE != "cuda", reason="only a GPU has a driver to ask")
SMALL = ("training.batch_size=16", "model.num_layers=1")
"""Of trainers in this process."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call":
        for name, value in report.user_properties:
            print(f"\n  {name} = {value}", end="", flush=True)


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Demo sessions, made by the project's own generator."""
    folder = tmp_path_factory.mktemp("demo") / "recordings"
    make({"out": str(folder), "sessions": 8, "minutes": 0.5}, Quiet())
    return folder


@pytest.fixture(scope="session")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two random sessions in which every head has something to learn: made in no time."""
    folder = tmp_path_factory.mktemp("noise")
    for seed in range(2):
        write_recording(folder / f"session_{seed}.npz", random_session(f"session_{seed}", 160, seed))
    return folder


@pytest.fixture
def in_process(tmp_path: Path, noise: Path) -> Iterator[Callable[..., InProcess]]:
    """Makes trainers on random sessions: `in_process("cuda", "training.amp=off")`."""
    made: list[InProcess] = []

    def one(device: str, *settings: str) -> InProcess:
        made.append(InProcess(tmp_path / f"run{len(made)}", noise, device, *SMALL, *settings))
        return made[-1]

    yield one
    for each in made:
        each.events.close()


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The runs folder of this test, for its processes too."""
    folder = tmp_path / "runs"
    folder.mkdir()
    monkeypatch.setenv("COCKPIT_RUNS", str(folder))
    monkeypatch.setenv("COCKPIT_QUEUE", str(tmp_path / "queue"))
    return folder


def command(*arguments: str, code: int = 0) -> str:
    """What `cockpit …` prints on stdout; both outputs where it is to fail."""
    typed = [sys.executable, "-P", "-m", "cockpit.cli", *arguments]
    answer = subprocess.run(typed, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200, check=False)
    assert answer.returncode == code, answer.stdout + answer.stderr
    return answer.stdout + (answer.stderr if code else "")


def read_gpu() -> Gpu:
    """What the driver says of the first card now."""
    reading = LocalMachine().read(ROOT)
    assert reading.gpus, reading.no_gpu
    return reading.gpus[0]


def memory_used() -> int:
    """Bytes of the card's memory that are in use."""
    used = read_gpu().memory_used
    assert used is not None
    return used
