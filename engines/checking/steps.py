"""A few steps of a model that is thrown away afterwards, an evaluation and a save, timed."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from engines.checking.duration import LEAST_FOR_RANGE, WARM_UP, StepTimes
from engines.checking.memory import size_of
from engines.contract.settings import RunConfig
from engines.contract.spec import Spec
from engines.training.evaluate import evaluate
from engines.training.order import Order, step_generator
from engines.training.precision import Precision
from engines.training.project import Context, Project, Split
from engines.training.step import TrainStep

MOST_SECONDS = 6.0
"""For all steps that count; half as much for those that warm up. At each point of a run at least one and two steps."""
GPU_BLOCK, GPU_BLOCKS = 30, 3
EVALUATION_SECONDS = 3.0
MOST_SAVED = 64 << 20
"""Bytes that are written to see how fast that is."""
SAVES = 4
"""So many times, the first of which only warms up."""


@dataclass(frozen=True)
class Built:
    """What a check has made of a config."""

    settings: RunConfig
    spec: Spec
    project: Project[Any]
    device: torch.device
    data: Split
    data_size: int
    """Bytes that it takes."""
    model: nn.Module
    precision: Precision
    parts: int = 1
    """Micro-batches of each batch."""


class StepTimer:
    """Trains the model, to see how long a step takes at each of `points` of a run."""

    def __init__(self, built: Built, points: int) -> None:
        self._built, training = built, built.settings.training
        self._seconds = MOST_SECONDS / points
        project, model = built.project, built.model
        optimizer = project.optimizer(project.param_groups(model, training.weight_decay), built.settings)
        self._step = TrainStep(
            project, model, optimizer, built.precision, [head.name for head in built.spec.heads],
            parts=lambda: built.parts, metrics=built.spec.measured, compiled=training.compile,
        )  # fmt: skip

    def time(self, order: Order, ctx: Context, grad_clip: float) -> StepTimes:
        """With their batches: up to `LEAST_FOR_RANGE` steps after `WARM_UP`, fewer where they are slow.

        On a GPU three blocks, with one wait at the end of each: asked after every step, it would be idle in between.
        """
        self._step.enter_stage(ctx.heads, grad_clip)
        self._step.set_weights(self._built.settings.loss_weights.model_dump())
        self._built.model.train()
        if self._built.device.type != "cuda":
            self._some(order, ctx, WARM_UP, 1, self._seconds / 2)
            return StepTimes.of(np.array(self._some(order, ctx, LEAST_FOR_RANGE, 2, self._seconds)))
        warm = self._some(order, ctx, 2 * WARM_UP, 2, self._seconds / 2)
        block = max(1, min(GPU_BLOCK, int(self._seconds / GPU_BLOCKS / warm[-1])))
        return StepTimes.of(np.array(self._some(order, ctx, GPU_BLOCKS * block, 2, self._seconds, block)))

    def _some(self, order: Order, ctx: Context, most: int, least: int, budget: float, block: int = 1) -> list[float]:
        """Seconds of each of `least` to `most` steps, until `budget` seconds are over; in a block, of their mean."""
        training = self._built.settings.training
        seconds: list[float] = []
        while len(seconds) < least or (len(seconds) < most and sum(seconds) < budget):
            began = time.perf_counter()
            for place in range(len(seconds), len(seconds) + block):
                place %= order.steps_per_pass
                randomness = step_generator(training.seed, 0, place)
                batch = self._built.data.train.batch(order.indices(0, place), randomness, ctx)
                row = self._step(batch, ctx, training.min_lr)
            row.tolist()  # waits for the device
            seconds += [(time.perf_counter() - began) / block] * block
        return seconds


def precision_seconds(
    built: Built, names: Sequence[str], order: Order, ctx: Context, grad_clip: float
) -> dict[str, float]:
    """Of a step in each precision, the median."""
    found = {}
    for name in names:
        timer = StepTimer(replace(built, precision=Precision(name, built.device)), points=len(names))
        found[name] = timer.time(order, ctx, grad_clip).median
    return found


def evaluation_seconds(built: Built, ctx: Context) -> float:
    """Of one evaluation after the first; where it takes long, by its first batches or the first pieces after them.

    Its first batch, which warms up, counts as any other: as the median of those after it.
    """
    size = max(1, built.project.validation_batch(built.settings) // built.parts)
    count = -(-len(built.data.validation) // size)
    share, began = 0.0, time.perf_counter()
    asked: list[float] = []
    """When it was asked whether to go on: before every batch and after every piece of what follows."""

    def interrupted() -> bool:
        asked.append(time.perf_counter())
        return len(asked) > 2 and asked[-1] - began > EVALUATION_SECONDS

    def progress(done: float, total: float, unit: str) -> None:
        nonlocal share
        share = done / total if total else 0.0

    result = evaluate(
        built.project, built.settings, built.data, built.model, ctx, built.settings.loss_weights.model_dump(),
        heads=[head.name for head in built.spec.heads], interrupted=interrupted, progress=progress,
        parts=built.parts,
    )  # fmt: skip
    moments = asked if result is None else [*asked, time.perf_counter()]
    if not count or len(moments) < 2:
        return time.perf_counter() - began
    batches = np.diff(moments[: max(2, count)])
    """The last one ends when something else begins, and is taken as the typical one."""
    typical = float(np.median(batches[1:] if len(batches) > 1 else batches))
    if len(moments) <= count:
        return typical * count
    unseen = typical * (count - len(batches))
    after = max(0.0, moments[-1] - moments[0] - float(batches.sum()) - unseen)
    if result is None and share:  # said of the pieces before the one at which it was left
        pieces = len(asked) - count
        after *= (pieces - 1) / pieces / share
    return typical + float(batches[1:].sum()) + unseen + after


def save_seconds(state: Mapping[str, Tensor], checkpoint: int, place: Path) -> float | None:
    """Of a save of `checkpoint` bytes in the folder `place`, by writing some of `state`; None where that fails."""
    some: list[Tensor] = []
    for tensor in state.values():
        left = (MOST_SAVED - size_of(some)) // tensor.element_size()
        some.append(tensor.detach().flatten()[:left].clone())
    padding = min(checkpoint, MOST_SAVED) - size_of(some)
    some.append(torch.zeros(max(0, padding), dtype=torch.uint8))
    took = []
    for _ in range(SAVES):
        began = time.perf_counter()
        try:
            with tempfile.TemporaryFile(dir=place) as file:
                torch.save(some, file)
                file.flush()
                os.fsync(file.fileno())
        except (OSError, RuntimeError):  # RuntimeError: what torch makes of a full disk
            return None
        took.append(time.perf_counter() - began)
    return float(np.median(took[1:])) * max(1.0, checkpoint / max(1, size_of(some)))
