"""A few real steps of a model that is thrown away afterwards, timed."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from engines.checking.duration import StepTimes
from engines.contract.settings import RunConfig
from engines.contract.spec import Spec
from engines.training.order import Order, step_generator
from engines.training.precision import Precision
from engines.training.project import Context, Project, Split
from engines.training.step import TrainStep

MOST_STEPS = 5
MOST_SECONDS = 3.0


def timed_steps(
    project: Project[Any],
    model: torch.nn.Module,
    data: Split,
    order: Order,
    ctx: Context,
    precision: Precision,
    settings: RunConfig,
    spec: Spec,
) -> StepTimes:
    """Up to `MOST_STEPS` steps with their batches, after one that is not counted; fewer where they are slow."""
    training = settings.training
    weights = settings.loss_weights.model_dump()
    optimizer = project.optimizer(project.param_groups(model, training.weight_decay), settings)
    step = TrainStep(
        project, model, optimizer, precision, [head.name for head in spec.heads],
        micro_batches=training.micro_batches,
    )  # fmt: skip
    step.enter_stage(ctx.heads, training.grad_clip)
    step.set_weights(weights)
    model.train()
    seconds: list[float] = []
    while len(seconds) <= MOST_STEPS and (len(seconds) < 2 or sum(seconds) < MOST_SECONDS):
        began = time.perf_counter()
        place = len(seconds) % order.steps_per_pass
        batch = data.train.batch(order.indices(0, place), step_generator(training.seed, 0, place), ctx)
        step(batch, ctx, training.min_lr).tolist()  # waits for the device
        seconds.append(time.perf_counter() - began)
    return StepTimes.of(np.array(seconds[1:]))
