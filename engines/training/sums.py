"""What the steps of an epoch add up to, so that its means are over elements, not over steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engines.contract.rundir import TrainLoss


def weighted_loss(weights: Mapping[str, float], means: Mapping[str, float | None]) -> float | None:
    """Σ weight × mean over the heads of `means` that were measured; None where none was."""
    measured = [weights[head] * mean for head, mean in means.items() if mean is not None]
    return sum(measured) if measured else None


class EpochSums:
    """Sums over the good steps of the running epoch, one step after the other: when they are added changes no bit."""

    def __init__(self, names: Sequence[str], heads: Sequence[str]) -> None:
        """`names`: the columns of a step, `heads` among them."""
        self._names, self._heads = list(names), list(heads)
        self.numbers = np.zeros(2 * len(self._names) + 2)
        """Total of each column, count of each, loss, steps that counted: float64."""

    def add(self, totals: np.ndarray, counts: np.ndarray, losses: np.ndarray, skipped: np.ndarray) -> None:
        """Take steps: (steps, names) totals and counts, (steps,) losses and whether each was left out."""
        rows = np.column_stack([totals, counts, losses, np.ones(len(losses))])[~skipped]
        self.numbers[:] = np.add.accumulate(np.vstack([self.numbers, rows]))[-1]

    def clear(self) -> None:
        """Begin another epoch."""
        self.numbers[:] = 0

    def means(self, weights: Mapping[str, float], definition: TrainLoss) -> dict[str, float | None]:
        """Means of each head and metric over the elements of the epoch so far, and the `loss`.

        The loss is by its `definition` Σ `weights` × mean, or the mean of the losses of the steps.
        """
        names = len(self._names)
        *sums, of_steps, steps = self.numbers.tolist()
        pairs = zip(self._names, sums[:names], sums[names:], strict=True)
        means = {name: total / count if count else None for name, total, count in pairs}
        if definition == "pooled":
            loss = weighted_loss(weights, {head: means[head] for head in self._heads})
        else:
            loss = of_steps / steps if steps else None
        return {"loss": loss, **means}
