"""Windows a second of two ranks, a core each, against one process on one core, at as many windows a rank.

The full-size controls model, by the real engine: each side trains twice, in turn, and the median of its steps counts.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.controls_data import random_recordings
from benchmarks.measure import Measurement
from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory
from engines.contract.steps import read_segments
from engines.runs import launch
from engines.runtime.following import MARK
from projects.controls.recordings import write_recording

CONFIG = """
project: controls
version: 2
data: {path: RECORDINGS}
training: {epochs: 1, steps_per_epoch: 100000, amp: off, log_every: 1}
launch: {device: cpu, threads: RANKS}
"""
A_RANK = 64
"""Windows of each step on each rank."""
STEPS, WARM_UP, TURNS = 16, 3, 2


def measure() -> list[Measurement]:
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        raise SystemExit("scaling needs two cores.")
    seconds: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for recording in random_recordings(sessions=2, frames=2048, seed=0):
            write_recording(folder / "recordings" / f"{recording.name}.npz", recording)
        for turn in range(TURNS):
            for ranks, times in seconds.items():
                times += _train(folder, f"{ranks}-{turn}", cores[:ranks])
    one, two = (ranks * A_RANK / statistics.median(times) for ranks, times in seconds.items())
    return [
        Measurement(
            name="scaling", ours=two, theirs=one, unit="windows/s", ratio=two / one, reach="≥ 1.6",
            note=f"2 ranks of {A_RANK} windows on a core each, and 1 on one; medians of {len(seconds[1])} steps",
        )
    ]  # fmt: skip


def _train(folder: Path, name: str, cores: list[int]) -> list[float]:
    """Seconds of each step after the first ones, on as many ranks as cores."""
    config = folder / f"{name}.yaml"
    config.write_text(CONFIG.replace("RECORDINGS", str(folder / "recordings")).replace("RANKS", str(len(cores))))
    batch = f"training.batch_size={A_RANK * len(cores)}"
    run = launch.prepare_training(config, [batch], run_dir=folder / f"run-{name}")
    launch.send(run, cmd.Stop(attempt=1, at_step=WARM_UP + STEPS))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = [_start(run, rank, cores, port) for rank in range(len(cores))]
    codes = [rank.wait() for rank in ranks]
    if codes[0] != 3 or any(codes[1:]):
        raise RuntimeError(f"ranks ended with {codes}:\n{run.stdout.read_text()[-2000:]}")
    columns, records = read_segments(run.steps)[-1]
    times = records[:, columns.index("time")]
    return [float(each) for each in np.diff(times)[WARM_UP - 1 :]]


def _start(run: RunDirectory, rank: int, cores: list[int], port: int) -> subprocess.Popen[bytes]:
    """A rank on its core, as torchrun would start it."""
    several = {
        MARK: str(run.path), "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(len(cores)),
        "LOCAL_WORLD_SIZE": str(len(cores)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    command = ["taskset", "--cpu-list", str(cores[rank]), sys.executable, "-P", "-m", "engines.train"]
    with open(run.stdout, "ab") as log:
        return subprocess.Popen(
            [*command, "--run-dir", str(run.path), "--attempt", "1"],
            env={**os.environ, **(several if len(cores) > 1 else {})}, stdout=log, stderr=log,
        )  # fmt: skip
