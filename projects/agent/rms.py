"""The running size of a loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn

FLOOR = 1e-8


class RunningRMS(nn.Module):
    """The root mean square of a loss over its last batches, corrected for its start at nothing.

    Buffers, so a checkpoint holds them. Before the first batch it is 1.
    """

    square: Tensor
    weight: Tensor

    def __init__(self, decay: float = 0.99) -> None:
        super().__init__()
        self.decay = decay
        self.register_buffer("square", torch.zeros(()))
        self.register_buffer("weight", torch.zeros(()))

    def value(self) -> Tensor:
        """The root mean square (scalar), at least 1e-8."""
        mean = self.square / self.weight.clamp(min=FLOOR)
        return torch.where(self.weight > 0, mean, 1.0).sqrt().clamp(min=FLOOR)

    def forward(self, total: Tensor, count: Tensor) -> Tensor:
        """`1 / value()` from before this batch, whose loss is `total / count`; in training it then counts.

        A batch without a count, or whose loss is not finite, changes nothing.
        """
        scale = self.value().reciprocal()
        if self.training:
            loss = (total.detach() / torch.where(count > 0, count, 1.0)).float()
            kept = torch.where((count > 0) & loss.isfinite(), self.decay, 1.0)
            self.square.lerp_(loss.nan_to_num(0, 0, 0).square(), 1 - kept)
            self.weight.lerp_(torch.ones_like(self.weight), 1 - kept)
        return scale
