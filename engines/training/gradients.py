"""How hard each head pulls at the parameters that several heads share, measured without a trace in the training."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn, zeros_like

from engines.contract.events import GradientNorms, finite
from engines.training.batches import Batches
from engines.training.precision import Precision, no_trace
from engines.training.project import Batch, Context, Loss, Project, mean
from engines.training.ranks import ALONE, Ranks, local
from engines.training.step import context_of_part, split_batch
from engines.training.work import Work

if TYPE_CHECKING:
    from engines.training.sharding import Sharding


def gradient_norms(
    project: Project[Any],
    model: nn.Module,
    batch: Batch,
    ctx: Context,
    heads: Sequence[str],
    precision: Precision,
    ranks: Ranks = ALONE,
    sharding: Sharding | None = None,
) -> tuple[dict[str, float], int]:
    """L2 norm of the gradient of each head's unweighted mean loss on the shared parameters, and how many those are.

    A loss's `scale` is in it, as it is in the gradient that trains.

    One forward, and a backward for each head that is on; of a model in shards a forward for each, too. Shared is what
    two heads or more have a gradient at that is not zero all over (of a single head all that its own reaches); zeros
    are what is left of heads that were computed as one tensor and divided. `model` is the uncompiled one: a compiled
    graph gives only one backward. What the forward pass leaves behind is put back: random numbers, buffers (as of batch
    norm), gradients. Raises RuntimeError where the device has no room.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    active = [head for head in heads if head in ctx.heads]
    gradients: dict[str, list[Tensor | None]] = {}
    if sharding is None:
        with no_trace(model, ctx.share):
            with precision.autocast():
                losses = project.losses(model, batch, ctx)
            for head in active:
                loss = precision.scaler.scale(_mean(losses[head], ranks))
                gradients[head] = _gradients(loss, parameters, keep=head != active[-1])
                if not ranks.alone:
                    gradients[head] = _added_up(gradients[head], parameters, ranks)
    else:
        for head in active:
            with no_trace(model, ctx.share), precision.autocast():
                loss = sharding.inside(partial(_mean_alone, project, model, batch, ctx, head, ranks))
                sharding.backward(precision.scaler.scale(loss))
            ranks.add_up([one.grad for one in parameters if one.grad is not None and local(one) is one])
            gradients[head] = [one.grad for one in parameters]
            model.zero_grad(set_to_none=True)
    reached = torch.tensor([[_reaches(one) for one in gradients[head]] for head in active], device=parameters[0].device)
    if sharding is not None:
        ranks.add_up([reached := reached.float()])
    shared = ((reached > 0).sum(0) >= min(2, len(active))).nonzero().flatten().tolist()
    scale, norm = precision.scaler.get_scale(), _norm if sharding is None else sharding.norm
    norms = {head: float(norm([gradients[head][place] for place in shared])) / scale for head in active}
    return norms, sum(parameters[place].numel() for place in shared)


def _mean_alone(project: Project[Any], model: nn.Module, batch: Batch, ctx: Context, head: str, ranks: Ranks) -> Tensor:
    return _mean(project.losses(model, batch, ctx)[head], ranks)


def _mean(loss: Loss, ranks: Ranks) -> Tensor:
    """What trains: the mean over the whole batch, with the loss's scale."""
    count = loss.count.detach().float().clone()
    ranks.add_up([count])
    found = mean(loss.total.float(), count)
    return found if loss.scale is None else found * loss.scale.detach()


def measure(work: Work, batches: Batches, precision: Precision) -> None:
    """Record the norms on the batch of the next step; at an epoch's end on its last."""
    batch, ctx = batches.look()
    parts = work.state.micro_batches
    part, ctx = split_batch(batch, parts)[0], context_of_part(ctx, 0, parts)
    norms, shared = gradient_norms(
        work.project, work.model, part, ctx, work.heads, precision, work.ranks, work.sharding
    )
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
    return gradient is not None and bool(local(gradient).any())


def _norm(gradients: Sequence[Tensor | None]) -> float:
    """In float32: squares overflow float16."""
    norms = [gradient.float().norm() for gradient in gradients if gradient is not None]
    return float(torch.stack(norms).norm()) if norms else 0.0
