"""One training step: forward, backward, clip, finite check, update. Nothing in it waits for the device."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from engines.training.clock import span
from engines.training.graph import StepGraph
from engines.training.metrics import Metrics
from engines.training.out_of_memory import Fit
from engines.training.precision import Precision, no_trace
from engines.training.project import Batch, Context, Loss, Project, mean
from engines.training.ranks import ALONE, Ranks, local
from engines.training.update import Update

if TYPE_CHECKING:
    from engines.training.sharding import Sharding


def split_batch(batch: Batch, parts: int) -> list[Batch]:
    """Cut every tensor of a batch into `parts` along its first dimension, none of them empty."""
    parts = min(parts, len(next(iter(batch.values()))))
    pieces = {name: tensor.tensor_split(parts) for name, tensor in batch.items()}
    return [{name: pieces[name][part] for name in batch} for part in range(parts)]


def context_of_part(ctx: Context, number: int, parts: int) -> Context:
    """The context of one of the parts that a batch is cut into."""
    return replace(ctx, share=ctx.share.part(number, parts)) if ctx.share else ctx


def stack_losses(losses: Mapping[str, Loss], heads: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Totals and counts of `heads`, in order: two (heads,) float32 tensors. Raises `LookupError` for a missing one."""
    if missing := [head for head in heads if head not in losses]:
        raise LookupError(f"the project gave no loss for {', '.join(missing)}, expected one per head that is on")
    totals = torch.stack([losses[head].total.float() for head in heads])
    counts = torch.stack([losses[head].count.float() for head in heads])
    return totals, counts


def scale_in(stage: str, lr_scale: float | Mapping[str, float]) -> float:
    """What multiplies a group's rate in `stage`."""
    return lr_scale.get(stage, 1.0) if isinstance(lr_scale, Mapping) else lr_scale


class TrainStep:
    """Steps a model; keeps loss weights on the device."""

    def __init__(
        self,
        project: Project[Any],
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        precision: Precision,
        heads: Sequence[str],
        *,
        parts: Callable[[], int] = lambda: 1,
        metrics: Sequence[str] = (),
        compiled: bool = False,
        fit: Fit | None = None,
        graph: StepGraph | None = None,
        ranks: Ranks = ALONE,
        sharding: Sharding | None = None,
    ) -> None:
        """`parts`: micro-batches of a batch. `fit` takes more of them when out of memory; `graph` replays steps."""
        self._project, self._eager, self.optimizer, self.precision = project, model, optimizer, precision
        self._model: nn.Module = torch.compile(model) if compiled else model  # type: ignore[assignment]
        self._compiled, self._fit, self._graph = compiled, fit, graph
        self._update = Update(optimizer, precision)
        self._ranks, self._sharding = ranks, sharding
        self._reached: frozenset[int] | None = None
        """Places of what the ranks add up, once a step of the stage has said it."""
        self._heads = list(heads)
        self._clip, self._parts = math.inf, parts
        self._parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self._added = [one for one in self._parameters if local(one) is one]
        """Whose gradients the ranks add up here."""
        device = self._parameters[0].device
        self._rates = [torch.zeros((), device=device) for _ in optimizer.param_groups]
        self._metrics = Metrics(metrics, device)
        self._names = [*heads, *metrics]
        self._weights = torch.zeros(len(heads), device=device)
        self._none = torch.zeros(len(self._names), device=device)
        self._unreached: list[nn.Parameter] | None = None
        """That no head which is on depends on, once known; asked of a compiled model alone."""
        self._active: list[str] = []
        self._on = self._index = torch.zeros(0, dtype=torch.long, device=device)

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Take loss weights from now on; the tensor keeps its place, so nothing is compiled again."""
        self._weights.copy_(torch.tensor([weights[head] for head in self._heads]), non_blocking=True)

    def enter_stage(self, heads: frozenset[str], grad_clip: float) -> None:
        """Take the loss terms of a stage: not in the step, since making a tensor of Python numbers waits for a GPU."""
        self._clip, self._unreached, self._reached = grad_clip, None, None
        if self._compiled:
            torch.compiler.reset()  # each stage compiles its own: too many variants would go on uncompiled, unsaid
        if self._graph is not None:
            self._graph.reset()
        self._active = [head for head in self._heads if head in heads]
        on, count = [self._heads.index(head) for head in self._active], len(self._names)
        index = [*on, *range(len(self._heads), count)]
        self._on = torch.tensor(on, device=self._weights.device)
        self._index = torch.tensor(index, device=self._weights.device)

    def __call__(self, batch: Batch, ctx: Context, lr: float) -> Tensor:
        """Do one step at rate `lr`; gives its row for the log.

        Of each head and metric how many elements were measured, and their total; the loss; gradient norm; skipped (0 or
        1). `StepLog` reads it.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = lr * scale_in(ctx.stage, group.get("lr_scale", 1.0))
        with self.precision.multiplying():
            if self._graph is None:
                return self._step(batch, ctx)
            with self._rates_as_tensors():
                return self._graph(lambda given: self._step(given, ctx), batch)

    @contextlib.contextmanager
    def _rates_as_tensors(self) -> Iterator[None]:
        """Rates that a graph reads instead of holding them; checkpoints keep the numbers."""
        groups = self.optimizer.param_groups
        before: list[dict[str, Any]] = [
            {key: group[key] for key in ("lr", "capturable") if key in group} for group in groups
        ]
        for group, rate in zip(groups, self._rates, strict=True):
            group |= {"lr": rate.fill_(group["lr"]), "capturable": True}
        try:
            yield
        finally:
            for group, values in zip(groups, before, strict=True):
                group.update(values)

    def _step(self, batch: Batch, ctx: Context) -> Tensor:
        if self._fit is None:
            totals, counts, loss = self._backward(batch, ctx)
        else:
            totals, counts, loss = self._fit.compute(
                lambda: self._backward(batch, ctx), len(next(iter(batch.values())))
            )
        with span("optimizer"):
            self.precision.scaler.unscale_(self.optimizer)
            norm = self._clip_gradients()
            skipped = torch.isnan(0 * (norm + loss)).float()  # four small kernels; ~isfinite takes seven
            self._update(skipped)
        return self._log_row(totals, counts, loss, norm, skipped)

    def _backward(self, batch: Batch, ctx: Context) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of the weighted loss of the whole batch; gives its totals, counts and value, detached.

        Behind the totals and counts of the heads that are on stand those of the metrics.
        """
        weights = self._weights if len(self._active) == len(self._heads) else self._weights.index_select(0, self._on)
        parts = [batch] if self._parts() == 1 else split_batch(batch, self._parts())
        if self._compiled and self._unreached is None:
            self._unreached = self._without_gradient(parts[0], context_of_part(ctx, 0, len(parts)))
        counts: Tensor | None = None
        if len(parts) > 1:  # the denominators of the whole batch, so that rare heads weigh as in one piece
            known = self._project.counts(batch, ctx)
            counts = self._of_all(torch.stack([known[head].float() for head in self._active]))
        summed: Tensor | None = None
        measured: list[tuple[Tensor, Tensor]] = []
        for number, part in enumerate(parts):
            with span("forward"), self.precision.autocast():
                totals, part_counts, scales, metrics = self._forward(part, context_of_part(ctx, number, len(parts)))
            if counts is None:
                counts = self._of_all(part_counts)
            factors = weights if scales is None else weights * scales
            loss = (mean(totals, counts) * factors).sum()
            with span("backward"):
                scaled = self.precision.scaler.scale(loss)
                if self._sharding is None:
                    scaled.backward()  # type: ignore[no-untyped-call]
                else:
                    self._sharding.backward(scaled)
            summed = totals.detach() if summed is None else summed + totals.detach()
            if metrics is not None:
                measured.append(metrics)
        for parameter in self._unreached or ():  # a compiled backward gives zeros, with which AdamW would decay them
            parameter.grad = None
        assert counts is not None
        assert summed is not None
        of_metrics = [torch.stack(values).sum(0) for values in zip(*measured, strict=True)]
        if not self._ranks.alone:
            self._ranks.add_up([*self._gradients(), summed, *of_metrics])
        whole = len(parts) == 1 and scales is None and self._ranks.alone
        loss = loss.detach() if whole else (mean(summed, counts) * weights).sum()
        if measured:
            summed, counts = torch.cat([summed, of_metrics[0]]), torch.cat([counts, of_metrics[1]])
        return summed, counts, loss

    def _forward(self, part: Batch, ctx: Context) -> tuple[Tensor, Tensor, Tensor | None, tuple[Tensor, Tensor] | None]:
        """Totals and counts of the heads that are on, factors on their gradients, and what is measured beside them."""

        def compute() -> tuple[Tensor, Tensor, Tensor | None, tuple[Tensor, Tensor] | None]:
            losses = self._project.losses(self._model, part, ctx)
            measured = self._metrics.of(losses) if self._metrics.names else None
            return *stack_losses(losses, self._active), self._metrics.scales(losses, self._active), measured

        return compute() if self._sharding is None else self._sharding.inside(compute)

    def _clip_gradients(self) -> Tensor:
        """Scale them down to the largest norm; gives the norm that they had."""
        if self._sharding is None:
            return nn.utils.clip_grad_norm_(self._parameters, self._clip)
        norm = self._sharding.norm([one.grad for one in self._parameters])
        nn.utils.clip_grads_with_norm_(self._parameters, self._clip, norm)
        return norm

    def _without_gradient(self, part: Batch, ctx: Context) -> list[nn.Parameter]:
        """The parameters that the losses of a batch do not depend on, by a step of the uncompiled model."""
        trained = [parameter for parameter in self._parameters if parameter.requires_grad]
        with no_trace(self._eager, ctx.share):  # to the end of the backward pass, which may read a buffer
            with self.precision.autocast():
                totals, _ = stack_losses(self._project.losses(self._eager, part, ctx), self._active)
            gradients = torch.autograd.grad(totals.sum(), trained, allow_unused=True)
        return [parameter for parameter, gradient in zip(trained, gradients, strict=True) if gradient is None]  # type: ignore[redundant-expr]

    def _of_all(self, counts: Tensor) -> Tensor:
        """The counts of the whole batch."""
        if self._ranks.alone:
            return counts
        found = counts.detach().clone()
        self._ranks.add_up([found])
        return found

    def _gradients(self) -> list[Tensor]:
        """What the ranks add up: as many on each, so that a parameter without a gradient on one of them has zeros.

        Which parameters a stage reaches is asked once, in its first step: the others get no gradient, as on one rank.
        """
        if self._reached is None:  # it may be empty: shards are added up by the backward pass
            mine = [place for place, one in enumerate(self._added) if one.grad is not None]
            self._reached = frozenset(place for one in self._ranks.gathered(mine) for place in one)
        for place in self._reached:
            if self._added[place].grad is None:
                self._added[place].grad = torch.zeros_like(self._added[place])
        gradients = [one.grad for one in self._added if one.grad is not None]
        if len(gradients) != len(self._reached):
            raise RuntimeError(
                "a step reaches other parameters than the first of its stage; expected the same on ranks"
            )
        return gradients

    def _log_row(self, totals: Tensor, counts: Tensor, loss: Tensor, norm: Tensor, skipped: Tensor) -> Tensor:
        if len(counts) < len(self._names):
            totals, counts = (self._none.index_copy(0, self._index, values) for values in (totals, counts))
        return torch.cat([counts, totals, torch.stack([loss, norm, skipped])])
