"""What the engine's step costs beyond a bare forward-backward-clip-optimizer loop on the same model and batch.

For each project's demo, in the first stage of its config. The engine runs for real, in a run directory, with its
logging, commands and events. Its batches are one that was gathered before, and the moment of handing it out is used to
run bare steps: none, one or two, at random, so that both sides are interleaved and meet the same machine. An engine
step is the time from one handing-out to the next. On a GPU, where single steps cannot be timed without waiting for
each, both sides go in blocks of steps, with a wait between blocks.
"""

from __future__ import annotations

import contextlib
import copy
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn

from benchmarks.measure import Measurement
from engines.contract.config import load_config
from engines.contract.events import EventWriter
from engines.contract.rundir import RunDirectory
from engines.runtime.listener import CommandListener
from engines.training import engine
from engines.training.loop import Trainer
from engines.training.project import Batch, Context

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
DEMOS: Mapping[str, tuple[str, ...]] = {
    "controls": ("sessions=2", "minutes=1"),
    "melee": ("games=3", "minutes=0.5"),
    "sim": ("drives=8", "minutes=0.4"),
    "agent": ("games=3", "frames=60"),
}
"""How much demo data is made for each project."""
SECONDS = 60.0
"""At most, for each project."""
STEPS = 1500
WARM_UP = 10
GPU_BLOCK = 50
"""Steps between two waits for a GPU."""


class Enough(Exception):
    """Both sides have been measured."""


class BareLoop:
    """Forward, backward, clip, optimizer: what anyone would write."""

    def __init__(self, trainer: Trainer) -> None:
        self._project, self._model = trainer.project, copy.deepcopy(trainer.model)
        self._weights = trainer.settings.loss_weights.model_dump()
        training = trainer.settings.training
        self._clip = training.grad_clip
        groups = self._project.param_groups(self._model, training.weight_decay)
        self._parameters = [parameter for group in groups for parameter in group["params"]]
        self._optimizer = torch.optim.AdamW(groups, lr=training.lr, fused=True)

    def step(self, batch: Batch, ctx: Context) -> None:
        losses = self._project.losses(self._model, batch, ctx)
        loss: Tensor = sum(
            self._weights[head] * losses[head].total / losses[head].count.clamp(min=1) for head in ctx.heads
        )
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._parameters, self._clip)
        self._optimizer.step()


class Interleaved:
    """In the place of a trainer's batches: hands out one again and again, and runs blocks of bare steps in between.

    Times are seconds a step, one a block.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._batch, self._bare = trainer.batches.look(), BareLoop(trainer)
        self._device = next(trainer.model.parameters()).device
        self._block = GPU_BLOCK if self._device.type == "cuda" else 1
        self._left = 0
        self._chance = random.Random(0)
        self._handed_out: float | None = None
        self._end = time.monotonic() + SECONDS
        self.engine: list[float] = []
        self.bare: list[float] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None: ...

    @property
    def what(self) -> str:
        """What was timed."""
        return f"blocks of {self._block} steps on a GPU" if self._block > 1 else "steps"

    def next(self) -> tuple[Batch, Context]:
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
                self._bare.step(*self._batch)
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
    """Of each project the ratio of the median engine step to the median bare step."""
    return [_of_project(project) for project in DEMOS]


def _of_project(project: str) -> Measurement:
    with tempfile.TemporaryDirectory() as folder:
        interleaved = _interleave(project, Path(folder))
    ours, theirs = (statistics.median(times[WARM_UP:]) * 1e3 for times in (interleaved.engine, interleaved.bare))
    counts = f"{len(interleaved.engine) - WARM_UP} engine and {len(interleaved.bare) - WARM_UP} bare"
    return Measurement(
        name=f"step_overhead, {project}", ours=ours, theirs=theirs, unit="ms a step", ratio=ours / theirs,
        reach="≤ 1.02", note=f"configs/{project}_demo.yaml; medians of {counts} {interleaved.what}",
    )  # fmt: skip


def _interleave(project: str, folder: Path) -> Interleaved:
    """Run the engine in `folder` until both sides are measured."""
    sets = [part for setting in DEMOS[project] for part in ("--set", setting)]
    make = [sys.executable, "-m", "cockpit.cli", "data", "make", project, str(folder / "data"), *sets]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    changes = [f"data.path={folder / 'data'}", "training.steps_per_epoch=1000000", "training.amp=off"]
    run = RunDirectory(folder / "run")
    run.make()
    events = EventWriter(run.events, 1)
    quiet = contextlib.redirect_stdout(sys.stderr)  # the engine logs to stdout
    with quiet, CommandListener(run, 1, events) as listener, contextlib.suppress(Enough):
        trainer = engine.load(run, load_config(CONFIGS / f"{project}_demo.yaml", changes), events, listener)
        interleaved = Interleaved(trainer)
        trainer.batches = interleaved  # type: ignore[assignment]
        trainer.train()
    return interleaved
