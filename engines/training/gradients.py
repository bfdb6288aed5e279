"""How hard each head pulls at the parameters that several heads share, measured without a trace in the training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn, zeros_like

from engines.contract.events import GradientNorms, finite
from engines.training.batches import Batches
from engines.training.precision import Precision, no_trace
from engines.training.project import Batch, Context, Project, mean
from engines.training.ranks import ALONE, Ranks
from engines.training.step import context_of_part, split_batch
from engines.training.work import Work


def gradient_norms(
    project: Project[Any],
    model: nn.Module,
    batch: Batch,
    ctx: Context,
    heads: Sequence[str],
    precision: Precision,
    ranks: Ranks = ALONE,
) -> tuple[dict[str, float], int]:
    """L2 norm of the gradient of each head's unweighted mean loss on the shared parameters, and how many those are.

    A loss's `scale` is in it, as it is in the gradient that trains.

    One forward, and a backward for each head that is on. Shared is what two heads or more have a gradient at that is
    not zero all over (of a single head all that its own reaches); zeros are what is left of heads that were computed
    as one tensor and divided. `model` is the uncompiled one: a compiled graph gives only one backward. What
    the forward pass leaves behind is put back: random numbers, buffers (as of batch norm), gradients. Raises
    RuntimeError where the device has no room.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    with no_trace(model, ctx.share):
        with precision.autocast():
            losses = project.losses(model, batch, ctx)
        active = [head for head in heads if head in ctx.heads]
        gradients: dict[str, list[Tensor | None]] = {}
        for head in active:
            count = losses[head].count.detach().float().clone()
            ranks.add_up([count])
            loss = mean(losses[head].total.float(), count)
            if (factor := losses[head].scale) is not None:
                loss = loss * factor.detach()
            gradients[head] = _gradients(precision.scaler.scale(loss), parameters, keep=head != active[-1])
            if not ranks.alone:
                gradients[head] = _added_up(gradients[head], parameters, ranks)
    reached = [sum(_reaches(gradients[head][place]) for head in active) for place in range(len(parameters))]
    least = min(2, len(active))
    shared = [place for place, count in enumerate(reached) if count >= least]
    scale = precision.scaler.get_scale()
    norms = {head: _norm([gradients[head][place] for place in shared]) / scale for head in active}
    return norms, sum(parameters[place].numel() for place in shared)


def measure(work: Work, batches: Batches, precision: Precision) -> None:
    """Record the norms on the batch of the next step; at an epoch's end on its last."""
    batch, ctx = batches.look()
    parts = work.state.micro_batches
    part, ctx = split_batch(batch, parts)[0], context_of_part(ctx, 0, parts)
    norms, shared = gradient_norms(work.project, work.model, part, ctx, work.heads, precision, work.ranks)
    numbers, bad = finite(norms)
    work.room.write(GradientNorms(step=work.state.step, norms=numbers, parameters=shared, nonfinite=bad))


def _gradients(loss: Tensor, parameters: Sequence[Tensor], *, keep: bool) -> list[Tensor | None]:
    """One gradient a parameter, None where the loss does not depend on it; `keep` the graph for a further head."""
    if not loss.requires_grad:
        return [None] * len(parameters)
    return list(torch.autograd.grad(loss, parameters, retain_graph=keep, allow_unused=True))


def _added_up(gradients: Sequence[Tensor | None], like: Sequence[Tensor], ranks: Ranks) -> list[Tensor | None]:
    """The sums over the ranks, zeros where none depends on a parameter."""
    found = [zeros_like(each) if one is None else one for one, each in zip(gradients, like, strict=True)]
    ranks.add_up(found)
    return list(found)


def _reaches(gradient: Tensor | None) -> bool:
    return gradient is not None and bool(gradient.any())


def _norm(gradients: Sequence[Tensor | None]) -> float:
    """In float32: squares overflow float16."""
    norms = [gradient.float().norm() for gradient in gradients if gradient is not None]
    return float(torch.stack(norms).norm()) if norms else 0.0
