"""What a project measures in its steps beside the losses, on the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from engines.contract.spec import SCALE
from engines.training.project import Loss


class Metrics:
    """Totals and counts of named metrics, out of what a project's `losses` gives. `<head>.scale` is a loss's scale."""

    def __init__(self, names: Sequence[str], device: torch.device) -> None:
        self.names = list(names)
        self._none = (torch.zeros((), device=device), torch.zeros((), device=device))
        self._one = torch.ones((), device=device)

    def of(self, losses: Mapping[str, Loss]) -> tuple[Tensor, Tensor]:
        """Two (metrics,) float32 tensors, in order, without gradients; zeros for a metric that is not there."""
        entries = [self._entry(name, losses) for name in self.names]
        totals, counts = zip(*entries, strict=True)
        return torch.stack(totals), torch.stack(counts)

    def scales(self, losses: Mapping[str, Loss], heads: Sequence[str]) -> Tensor | None:
        """The factors on the gradients of `heads`: (heads,), or None where no loss has one.

        Raises `LookupError` for a head whose spec does not say that it has one.
        """
        given = [losses[head].scale for head in heads]
        for head, scale in zip(heads, given, strict=True):
            if scale is not None and head + SCALE not in self.names:
                raise LookupError(f"the loss of {head} has a scale, expected scaled=True in its Head")
        if all(scale is None for scale in given):
            return None
        return torch.stack([self._one if scale is None else scale.detach().float() for scale in given])

    def _entry(self, name: str, losses: Mapping[str, Loss]) -> tuple[Tensor, Tensor]:
        if name in losses:
            return losses[name].total.detach().float(), losses[name].count.detach().float()
        scaled = losses.get(name.removesuffix(SCALE)) if name.endswith(SCALE) else None
        if scaled is None or scaled.scale is None:
            return self._none
        return scaled.scale.detach().float(), self._one
