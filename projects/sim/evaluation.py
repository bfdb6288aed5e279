"""One pass over the validation windows."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engines.training.project import Batch, Context, Evaluation, Loss, Piece, Result
from projects.sim import metrics
from projects.sim.labels import HIGH, LABELS
from projects.sim.losses import ClassWeights, sim_losses

TURNS = 5


def answer_ms(model: nn.Module, batch: Batch, clock: Callable[[], float] = time.perf_counter) -> float:
    """The milliseconds in which the model answers a batch: the fastest of five, after a first that is not timed.

    The others say how busy the machine is.
    """
    times = []
    for turn in range(TURNS + 1):
        began = clock()
        model(batch)["risk_logits"].cpu()  # which waits for a GPU
        if turn:
            times.append(1000 * (clock() - began))
    return min(times)


@dataclass(frozen=True, kw_only=True)
class SimResult(Result):
    """With what the scores were made of: labels and predictions (n, 3), and the mean losses."""

    labels: NDArray[np.int64]
    predicted: NDArray[np.int64]


class SimEvaluation(Evaluation):
    """Scores a model, and keeps what a review of the thresholds needs.

    Args:
        weights: what the classes weigh in the losses.
        groups: (n,) the recording of each validation window, in their order.
        best_by: the score, a name of the metrics or `composite`.
    """

    def __init__(self, weights: ClassWeights, groups: NDArray[np.int64], best_by: str) -> None:
        self._weights, self._groups, self._best_by = weights, groups, best_by
        self.kept: list[tuple[Tensor, Tensor, Tensor]] = []
        """Labels, predictions (n, 3) and the probability of high risk (n,) of each batch."""
        self._window: Batch = {}
        self._ms: float | None = None

    def add(self, model: nn.Module, batch: Batch, ctx: Context) -> Mapping[str, Loss]:
        output = model(batch)
        self._window = self._window or {name: values[:1] for name, values in batch.items()}
        labels = torch.stack([batch[f"{task}_id"] for task in LABELS], dim=1)
        predicted = torch.stack([output[f"{task}_logits"].argmax(1) for task in LABELS], dim=1)
        self.kept.append((labels, predicted, output["risk_logits"].float().softmax(1)[:, HIGH]))
        losses = sim_losses(output, batch, self._weights)
        return {name: loss for name, loss in losses.items() if name in ctx.heads}

    def after(self, model: nn.Module, ctx: Context) -> Generator[Piece]:
        """The time of an answer, for one window."""
        self._ms = answer_ms(model, self._window)
        yield from ()

    def result(self) -> SimResult:
        joined = [torch.cat(parts).cpu() for parts in zip(*self.kept, strict=True)]
        labels, predicted, high = joined[0].numpy(), joined[1].numpy(), joined[2].double().numpy()
        found = metrics.confusions(labels, predicted)
        values = metrics.values(found)
        score = metrics.composite(values)
        known = labels[:, 0] >= 0
        return SimResult(
            values={**values, "composite": score, "ms": self._ms},
            score=score if self._best_by == "composite" else values[self._best_by],
            review={
                "risk_high": high[known], "risk_high_target": labels[known, 0] == HIGH,
                "groups": self._groups[: len(labels)][known],
            },
            tables={
                "classes": metrics.class_table(found),
                **{f"{task} confusion": metrics.confusion_table(task, one) for task, one in found.items()},
            },
            labels=labels,
            predicted=predicted,
        )  # fmt: skip
