"""Passes over the validation data, in fp32, that change nothing of the training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn

from engines.training.out_of_memory import Fit
from engines.training.precision import random_state_kept
from engines.training.project import Context, Evaluation, Project, Result, Split
from engines.training.ranks import ALONE, Ranks
from engines.training.schedule import Schedule
from engines.training.step import stack_losses
from engines.training.sums import weighted_loss
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
    ranks: Ranks = ALONE,
    parts: int = 1,
) -> Result | None:
    """The project's result with the validation losses among its values; None when `interrupted` said so.

    `progress` hears how far what comes after the pass is (`Evaluation.after`). `parts`: of a training batch, as the
    memory allows; a validation batch is cut alike.
    Values get `loss` (weighted by `weights`, of the heads that are on) and one unweighted loss a head. Several ranks
    divide the batches; rank 0 does what comes after them, and the others get its values and score alone.
    """
    active = [head for head in heads if head in ctx.heads]
    evaluation = project.evaluation(cfg, data)
    wide = torch.float32 if next(model.parameters()).device.type == "mps" else torch.float64
    model.eval()
    try:
        with torch.inference_mode():
            size = max(1, project.validation_batch(cfg) // parts)
            batches = torch.arange(len(data.validation)).split(size)  # type: ignore[no-untyped-call]

            def add(indices: Tensor) -> Tensor:
                losses = evaluation.add(model, data.validation.batch(indices, None, ctx), ctx)
                return torch.stack(stack_losses(losses, active)).to(wide)

            sums = _each(batches, add, evaluation, ranks, interrupted)
            if sums is None:
                return None
            if not ranks.first:
                return ranks.from_first(None)
            with closing(evaluation.after(model, ctx)) as pieces:
                for piece in pieces:
                    if interrupted():
                        return ranks.from_first(None)
                    progress(*piece)
            result = evaluation.result()
    finally:
        model.train()
    if sums:
        totals, counts = reduce(torch.add, sums).tolist()
        pairs = zip(active, totals, counts, strict=True)
        means = {head: total / count if count else None for head, total, count in pairs}
        result = replace(result, values={"loss": weighted_loss(weights, means), **means, **result.values})
    ranks.from_first(Result(result.values, result.score))
    return result


def _each(
    batches: Sequence[Tensor],
    add: Callable[[Tensor], Tensor],
    evaluation: Evaluation,
    ranks: Ranks,
    interrupted: Callable[[], bool],
) -> list[Tensor] | None:
    """What `add` gives for each batch, in order; None when `interrupted` said so. On rank 0 what was kept, too."""
    divides = evaluation.kept is not None and not ranks.alone
    sums: list[Tensor] = []
    for number, indices in enumerate(batches):
        turn = number % ranks.count if divides else 0
        if turn == 0 and ranks.from_first(interrupted()):
            return None
        if turn == ranks.number:
            sums.append(add(indices))
        elif divides:
            evaluation.pass_over(len(indices))
    if not divides:
        return sums
    found = ranks.gathered((on_host(sums), on_host(evaluation.kept)))
    evaluation.kept = _in_turn([kept for _, kept in found])
    return _in_turn([of_rank for of_rank, _ in found])


def _in_turn(lists: Sequence[list[Any]]) -> list[Any]:
    """The first of each list, then the second of each, and so on."""
    return [each[turn] for turn in range(max(map(len, lists))) for each in lists if turn < len(each)]


def on_host(value: Any) -> Any:
    """`value` with every tensor in it on the CPU."""
    match value:
        case Tensor():
            return value.cpu()
        case dict():
            return {key: on_host(each) for key, each in value.items()}
        case list() | tuple():
            return type(value)(map(on_host, value))
    return value


class Evaluator:
    """Validates a training where it stands, with the loss weights in force."""

    def __init__(self, work: Work, schedule: Schedule, fit: Fit) -> None:
        self._work, self._schedule, self._fit = work, schedule, fit

    def __call__(self, alone: nn.Module | None = None) -> Result | None:
        """What was found; None when a stop came. `alone`: the whole model, which this rank evaluates by itself."""
        with self._work.whole_model() if alone is None else nullcontext(alone) as model:
            return self._evaluated(model, ALONE if alone is not None else self._work.ranks)

    def _evaluated(self, model: nn.Module, ranks: Ranks) -> Result | None:
        work = self._work

        def once() -> Result | None:
            return evaluate(
                work.project, work.settings, work.data, model, self._schedule.context(), work.state.live.weights,
                heads=work.heads, interrupted=lambda: work.listener.stop_requested, progress=work.phases.progress,
                parts=work.state.micro_batches, ranks=ranks,
            )  # fmt: skip

        with work.phases.during("evaluating"), random_state_kept():
            return self._fit.compute(once, work.settings.training.batch_size)
