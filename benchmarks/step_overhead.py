"""What the engine's step costs beyond a bare forward-backward-clip-optimizer loop on the same model and batch.

The engine runs for real, in a run directory, with its logging, commands and events. Its data source hands out one
batch that was gathered before, and uses the moment to run bare steps: none, one or two, at random, so that both sides
are interleaved and meet the same machine. An engine step is the time from one handing-out to the next. On a GPU, where
single steps cannot be timed without waiting for each, both sides go in blocks of steps, with a wait between blocks.
"""

from __future__ import annotations

import contextlib
import copy
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.controls_data import random_recordings
from benchmarks.measure import Measurement
from engines.contract.events import EventWriter
from engines.contract.rundir import RunDirectory
from engines.runtime.listener import CommandListener
from engines.training.loop import Trainer
from engines.training.precision import choose_device
from engines.training.project import Batch, Context, Split
from projects.controls.config import ControlsConfig
from projects.controls.project import ControlsProject
from projects.controls.recordings import write_recording
from projects.controls.spec import SPEC

HEADS = [head.name for head in SPEC.heads]
MODEL = {"d_model": 128, "nhead": 4, "num_layers": 2, "dim_feedforward": 256}
"""Sized so that a step takes 40 ms or more on two cores: the overhead of a longer step is smaller still."""
GPU_MODEL = {"d_model": 256, "nhead": 8, "num_layers": 6, "dim_feedforward": 512}
SECONDS = 60.0
STEPS = 500
WARM_UP = 10
GPU_BLOCK = 50
"""Steps between two waits for a GPU."""


class Enough(Exception):
    """Both sides have been measured."""


class BareLoop:
    """Forward, backward, clip, optimizer: what anyone would write."""

    def __init__(self, project: ControlsProject, model: nn.Module, settings: ControlsConfig, batch: Batch) -> None:
        self._project, self._model, self._batch = project, model, batch
        self._weights = settings.loss_weights.model_dump()
        self._clip = settings.training.grad_clip
        self._optimizer = torch.optim.AdamW(
            project.param_groups(model, settings.training.weight_decay), lr=settings.training.lr, fused=True
        )
        self._context = Context(0, 0, 0.0, "train", frozenset(HEADS))

    def step(self) -> None:
        losses = self._project.losses(self._model, self._batch, self._context)
        loss: Tensor = sum(self._weights[head] * loss.total / loss.count.clamp(min=1) for head, loss in losses.items())
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._model.parameters(), self._clip)
        self._optimizer.step()


class InterleavingSource:
    """Hands out one fixed batch, and runs blocks of bare steps in between. Times are seconds a step, one a block."""

    def __init__(self, batch: Batch, size: int, bare: BareLoop, device: torch.device) -> None:
        self._batch, self._size, self._bare, self._device = batch, size, bare, device
        self._block = GPU_BLOCK if device.type == "cuda" else 1
        self._left = 0
        self._chance = random.Random(0)
        self._handed_out: float | None = None
        self._end = time.monotonic() + SECONDS
        self.engine: list[float] = []
        self.bare: list[float] = []

    def __len__(self) -> int:
        return self._size

    @property
    def what(self) -> str:
        """What was timed."""
        return f"blocks of {self._block} steps on a GPU" if self._block > 1 else "steps"

    def batch(self, indices: Tensor, rng: np.random.Generator | None, ctx: Context | None = None) -> Batch:
        if self._left:
            self._left -= 1
            return self._batch
        if self._handed_out is not None:
            self.engine.append(self._since(self._handed_out))
        enough = min(len(self.engine), len(self.bare)) >= STEPS + WARM_UP
        if enough or time.monotonic() > self._end:
            raise Enough
        for _ in range(self._chance.randrange(3)):
            began = time.perf_counter()
            for _ in range(self._block):
                self._bare.step()
            self.bare.append(self._since(began))
        self._left = self._block - 1
        self._handed_out = time.perf_counter()
        return self._batch

    def _since(self, began: float) -> float:
        """Seconds a step of the block that began then, when the device has done it."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return (time.perf_counter() - began) / self._block


def measure() -> list[Measurement]:
    """The ratio of the median engine step to the median bare step."""
    with tempfile.TemporaryDirectory() as folder:
        interleaved = _interleave(Path(folder))
    ours, theirs = (statistics.median(times[WARM_UP:]) * 1e3 for times in (interleaved.engine, interleaved.bare))
    counts = f"{len(interleaved.engine) - WARM_UP} engine and {len(interleaved.bare) - WARM_UP} bare"
    note = f"medians of {counts} {interleaved.what}"
    return [
        Measurement(
            name="step_overhead", ours=ours, theirs=theirs, unit="ms a step", ratio=ours / theirs, reach="≤ 1.02",
            note=note,
        )
    ]  # fmt: skip


def _interleave(folder: Path) -> InterleavingSource:
    """Run the engine in `folder` until both sides are measured."""
    for recording in random_recordings(sessions=2, frames=2048, seed=0):
        write_recording(folder / "recordings" / f"{recording.name}.npz", recording)
    device = choose_device("auto")
    settings = ControlsConfig.model_validate(
        {
            "data": {"path": str(folder / "recordings")},
            "model": GPU_MODEL if device.type == "cuda" else MODEL,
            "training": {"batch_size": 64, "steps_per_epoch": 1_000_000, "amp": "off"},
        }
    )
    torch.manual_seed(settings.training.seed)
    project = ControlsProject()
    data = project.data(settings, device)
    model = project.model(settings, data).to(device)
    batch = data.train.batch(torch.arange(settings.training.batch_size), np.random.default_rng(0))
    bare = BareLoop(project, copy.deepcopy(model), settings, batch)
    interleaved = InterleavingSource(batch, len(data.train), bare, device)
    run = RunDirectory(folder / "run")
    run.make()
    events = EventWriter(run.events, 1)
    split = Split(interleaved, data.validation)
    quiet = contextlib.redirect_stdout(sys.stderr)  # the engine logs to stdout
    with quiet, CommandListener(run, 1, events) as listener, contextlib.suppress(Enough):
        Trainer(run, settings, SPEC.heads, project, split, model, events, listener).train()
    return interleaved
