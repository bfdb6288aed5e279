"""Numbers as distributions over bins: two-hot targets and what a distribution says."""

from __future__ import annotations

import torch
from torch import Tensor, nn

MASKED = -1e4
"""What a logit of -inf counts as: 0 · -inf is NaN."""


def symlog(x: Tensor) -> Tensor:
    """`sign(x) · ln(1 + |x|)`."""
    return x.sign() * x.abs().log1p()


def symexp(y: Tensor) -> Tensor:
    """`sign(y) · (e^|y| - 1)`, the inverse of `symlog`."""
    return y.sign() * y.abs().expm1()


def log_softmax(logits: Tensor) -> Tensor:
    """Log probabilities (…, classes) in float32, finite where logits are -inf."""
    return logits.float().clamp(min=MASKED).log_softmax(-1)


class TwoHot(nn.Module):
    """Bins of which a number has weight on the two next to it.

    Bins are symexp of equal steps from -span to span, weights and means in raw units (Dreamer). With `in_symlog` both
    are in symlog units, as in the original of this project: the mean of a mixture is then too small.
    """

    centres: Tensor

    def __init__(self, bins: int, span: float, *, in_symlog: bool = False) -> None:
        super().__init__()
        self.in_symlog = in_symlog
        grid = torch.linspace(-span, span, bins, dtype=torch.float64)
        grid = (grid - grid.flip(0)) / 2  # mirrored to the last bit
        self.register_buffer("centres", (grid if in_symlog else symexp(grid)).float(), persistent=False)

    def place(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The lower bin of each value and the weight of the one above it; values outside are at the end bins."""
        inside = (symlog(values) if self.in_symlog else values).clamp(self.centres[0], self.centres[-1])
        lower = torch.searchsorted(self.centres, inside.contiguous(), right=True).sub(1).clamp(0, len(self.centres) - 2)
        low, high = self.centres[lower], self.centres[lower + 1]
        return lower, (inside - low) / (high - low)

    def loss(self, logits: Tensor, values: Tensor) -> Tensor:
        """Cross-entropy (…) of logits (…, bins) to the two-hot of values (…)."""
        lower, above = self.place(values.float())
        pair = log_softmax(logits).gather(-1, torch.stack([lower, lower + 1], dim=-1))
        return -(pair[..., 0] * (1 - above) + pair[..., 1] * above)

    def mean(self, logits: Tensor) -> Tensor:
        """The number (…) that logits (…, bins) say; mirrored bins are added first, so that even odds give exactly 0."""
        weighted = log_softmax(logits).exp() * self.centres
        mean = (weighted + weighted.flip(-1)).sum(-1) / 2
        return symexp(mean) if self.in_symlog else mean

    def used(self, values: Tensor) -> Tensor:
        """How many of `values` have weight on each bin: (bins,) int64."""
        lower, above = self.place(values.flatten().float())
        hits = torch.cat([lower[above < 1], lower[above > 0] + 1])
        return torch.bincount(hits, minlength=len(self.centres))
