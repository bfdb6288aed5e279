"""Passes over the validation data, in fp32, that change nothing of the training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from engines.training.out_of_memory import Fit
from engines.training.precision import random_state_kept
from engines.training.project import Context, Project, Result, Split
from engines.training.schedule import Schedule
from engines.training.step import stack_losses, weighted_loss
from engines.training.work import Work


def evaluate(
    project: Project[Any],
    cfg: Any,
    data: Split,
    model: nn.Module,
    ctx: Context,
    weights: Mapping[str, float],
    *,
    heads: Sequence[str],
    interrupted: Callable[[], bool],
    progress: Callable[[float, float, str], None] = lambda done, total, unit: None,
    parts: int = 1,
) -> Result | None:
    """The project's result with the validation losses among its values; None when `interrupted` said so.

    `progress` hears how far what comes after the pass is (`Evaluation.after`). `parts`: of a training batch, as the
    memory allows; a validation batch is cut alike.
    Values get `loss` (weighted by `weights`, of the heads that are on) and one unweighted loss a head.
    """
    active = [head for head in heads if head in ctx.heads]
    evaluation = project.evaluation(cfg, data)
    sums: torch.Tensor | None = None
    wide = torch.float32 if next(model.parameters()).device.type == "mps" else torch.float64
    model.eval()
    try:
        with torch.inference_mode():
            size = max(1, project.validation_batch(cfg) // parts)
            for indices in torch.arange(len(data.validation)).split(size):  # type: ignore[no-untyped-call]
                if interrupted():
                    return None
                losses = evaluation.add(model, data.validation.batch(indices, None, ctx), ctx)
                batch_sums = torch.stack(stack_losses(losses, active)).to(wide)
                sums = batch_sums if sums is None else sums + batch_sums
            with closing(evaluation.after(model, ctx)) as pieces:
                for piece in pieces:
                    if interrupted():
                        return None
                    progress(*piece)
            result = evaluation.result()
    finally:
        model.train()
    if sums is None:
        return result
    totals, counts = sums.tolist()
    means = {head: total / count if count else None for head, total, count in zip(active, totals, counts, strict=True)}
    return replace(result, values={"loss": weighted_loss(weights, means), **means, **result.values})


class Evaluator:
    """Validates a training where it stands, with the loss weights in force."""

    def __init__(self, work: Work, schedule: Schedule, fit: Fit) -> None:
        self._work, self._schedule, self._fit = work, schedule, fit

    def __call__(self) -> Result | None:
        """What was found; None when a stop came."""
        work = self._work

        def once() -> Result | None:
            return evaluate(
                work.project, work.settings, work.data, work.model, self._schedule.context(), work.state.live.weights,
                heads=work.heads, interrupted=lambda: work.listener.stop_requested, progress=work.phases.progress,
                parts=work.state.micro_batches,
            )  # fmt: skip

        with work.phases.during("evaluating"), random_state_kept():
            return self._fit.compute(once, work.settings.training.batch_size)
