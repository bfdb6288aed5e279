"""The training objective: weighted cross-entropies of risk, reason and action, and how sure the model may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engines.training.project import Batch, Loss
from projects.sim.labels import ABSENT, LABELS

CONFIDENCE = "confidence"
SURE_OF = ("risk", "action")
"""What has to be right for confidence to be right."""


@dataclass(frozen=True)
class ClassWeights:
    """What a sample of each class weighs, by task: (classes,)."""

    weights: Mapping[str, Tensor]

    @classmethod
    def of(cls, labels: Tensor, kind: str, cap: float) -> ClassWeights:
        """From the training labels (n, 3): 1, or `balanced` n / (classes · n of the class), at most `cap`.

        Classes that never occur are left out of the number of classes, and weigh 1.
        """
        weights = {}
        for place, (task, names) in enumerate(LABELS.items()):
            known = labels[:, place][labels[:, place] != ABSENT]
            counts = torch.bincount(known, minlength=len(names)).float()
            balanced = counts.sum() / ((counts > 0).sum() * counts)
            weights[task] = torch.where((counts > 0) & (kind == "balanced"), balanced.clamp(max=cap), 1.0)
        return cls(weights)


def sample_weights(batch: Batch, task: str, weights: ClassWeights) -> Tensor:
    """What each sample weighs in the loss of a task, 0 without a label: (batch,)."""
    ids = batch[f"{task}_id"]
    return torch.where(ids == ABSENT, 0.0, batch["weight"] * weights.weights[task][ids.clamp(min=0)])


def sim_losses(output: Mapping[str, Tensor], batch: Batch, weights: ClassWeights) -> dict[str, Loss]:
    """By head, Σ w · loss and Σ w, so that their ratio is the mean also where weights add up to less than 1."""
    losses = {}
    for task in LABELS:
        weight = sample_weights(batch, task, weights)
        logits = output[f"{task}_logits"].float()
        entropy = F.cross_entropy(logits, batch[f"{task}_id"].clamp(min=0), reduction="none")
        losses[task] = Loss((weight * entropy).sum(), weight.sum())
    losses[CONFIDENCE] = _confidence(output, batch)
    return losses


def _confidence(output: Mapping[str, Tensor], batch: Batch) -> Loss:
    """Binary cross-entropy against whether risk and action, as far as they have labels, are right."""
    logits = output.get("confidence_logits")
    if logits is None:
        nothing = output["risk_logits"].sum() * 0
        return Loss(nothing, torch.zeros_like(nothing))
    right = torch.ones_like(batch["weight"], dtype=torch.bool)
    for task in SURE_OF:
        ids = batch[f"{task}_id"]
        right &= (ids == ABSENT) | (output[f"{task}_logits"].detach().argmax(1) == ids)
    weight = confidence_weights(batch)
    entropy = F.binary_cross_entropy_with_logits(logits[:, 0].float(), right.float(), reduction="none")
    return Loss((weight * entropy).sum(), weight.sum())


def confidence_weights(batch: Batch) -> Tensor:
    """What each sample weighs in the loss of confidence, 0 where neither task has a label: (batch,)."""
    known = torch.stack([batch[f"{task}_id"] != ABSENT for task in SURE_OF]).any(dim=0)
    return torch.where(known, batch["weight"], 0.0)


def loss_counts(batch: Batch, weights: ClassWeights, confidence: bool) -> dict[str, Tensor]:
    """The `count` of each loss, from the batch alone."""
    counts = {task: sample_weights(batch, task, weights).sum() for task in LABELS}
    sure = confidence_weights(batch).sum()
    return {**counts, CONFIDENCE: sure if confidence else torch.zeros_like(sure)}
