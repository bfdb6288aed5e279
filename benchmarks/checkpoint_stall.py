"""What a checkpoint costs a training: how long the loop is held for one, and how much longer steps take meanwhile.

The engine's own trainer at the full size of controls, in a run directory on this disk. Three kinds of blocks of steps
by turns, in an order drawn at random: without a save, with one in the background, with one that is waited for. A block
is long enough for the background write to end in it.
"""

from __future__ import annotations

import contextlib
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.controls_data import random_recordings
from benchmarks.measure import Measurement
from engines.contract.config import load_config
from engines.contract.events import EventWriter
from engines.contract.rundir import RunDirectory
from engines.runtime.listener import CommandListener
from engines.training import engine
from engines.training.loop import Trainer
from projects.controls.recordings import write_recording

CONFIG = Path(__file__).resolve().parents[1] / "configs" / "controls_v2.yaml"
MODEL = {"d_model": 256, "nhead": 8, "num_layers": 6, "dim_feedforward": 512}
"""Full size."""
KINDS = ("plain", "background", "waited")
ROUNDS = 8
LEAST_SECONDS = 1.5
"""Of a block: several times what a write takes."""
CPU_BATCH = 16


def measure() -> list[Measurement]:
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        blocks, step = _blocks(Path(folder))
    whole, held = (
        {kind: statistics.median(block[place] for block in blocks[kind]) for kind in KINDS} for place in (0, 1)
    )
    slower = whole["background"] - whole["plain"]
    note = f"theirs: a step; all the steps of a block with a save together took {1e3 * slower:+.0f} ms"
    return [
        Measurement(
            name="checkpoint_stall, against a step", ours=1e3 * held["background"], theirs=1e3 * step, unit="ms a save",
            ratio=held["background"] / step, reach="≤ 1", note=note,
        ),
        Measurement(
            name="checkpoint_stall, against waiting", ours=1e3 * held["background"], theirs=1e3 * held["waited"],
            unit="ms a save", ratio=held["waited"] / held["background"], reach="> 1",
            note="theirs: the same save, waited for",
        ),
    ]  # fmt: skip


def _blocks(folder: Path) -> tuple[dict[str, list[tuple[float, float]]], float]:
    """Seconds of every block by its kind, in all and of what the loop was held in it for a save; and of a step."""
    for recording in random_recordings(sessions=2, frames=2048, seed=0):
        write_recording(folder / "recordings" / f"{recording.name}.npz", recording)
    sets = [f"data.path={folder / 'recordings'}", "training.steps_per_epoch=1000000", "training.log_every=1000"]
    sets += [f"model.{key}={value}" for key, value in MODEL.items()]
    if not torch.cuda.is_available():
        sets.append(f"training.batch_size={CPU_BATCH}")
    run = RunDirectory(folder / "run")
    run.make()
    events = EventWriter(run.events, 1)
    with CommandListener(run, 1, events) as listener:
        trainer = engine.load(run, load_config(CONFIG, sets), events, listener)
        with trainer.checkpoints:
            return _timed(trainer)


def _timed(trainer: Trainer) -> tuple[dict[str, list[tuple[float, float]]], float]:
    def block(kind: str, steps: int) -> tuple[float, float]:
        began = time.perf_counter()
        if kind == "background":
            trainer.checkpoints.save_in_background()
        elif kind == "waited":
            trainer.checkpoints.save()
        held = time.perf_counter() - began
        for _ in range(steps):
            trainer.one_step()
        asked = time.perf_counter()
        trainer.checkpoints.settle()
        held += time.perf_counter() - asked
        trainer.flush()  # waits for the device
        return time.perf_counter() - began, held

    block("plain", 5)
    steps = max(3, round(LEAST_SECONDS / (block("plain", 5)[0] / 5)))
    block("background", steps)
    times: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    chance = random.Random(0)
    for _ in range(ROUNDS):
        for kind in chance.sample(KINDS, len(KINDS)):
            times[kind].append(block(kind, steps))
    return times, statistics.median(whole for whole, _ in times["plain"]) / steps
