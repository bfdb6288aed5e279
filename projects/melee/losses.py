"""The losses, as sums and counts over fighters and frames."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engines.training.project import Loss
from projects.melee.frames import (
    ACTION,
    AGE,
    BINARY,
    CLASS_COLUMNS,
    CLASSES,
    CONTINUOUS,
    DYNAMICS,
    PERCENT,
    SCALE,
    VELOCITY,
    Frames,
    units,
)  # fmt: skip
from projects.melee.rules import Prediction

BETA = 0.1
"""Game units: smaller errors count squared, larger ones by themselves."""
HEADS = ("continuous", "velocity", "dynamics", "binary", *CLASSES, "age", "hit")


@dataclass(frozen=True)
class Objective:
    """How a prediction is judged.

    regression: `smooth_l1` in game units, or `mse` in scaled ones. unimix: share of the uniform distribution in every
    class probability. change_weight: weight of the action loss on frames where the action changes.
    """

    regression: str = "smooth_l1"
    unimix: float = 0.01
    change_weight: float = 1.0


def head_losses(
    objective: Objective, said: Prediction, last: Frames, before: Frames, target: Frames
) -> dict[str, Loss]:
    """One loss per head for the frame after `last`, which may be a predicted one, on the true `target`.

    before: the true frames before `target`.
    """
    weights = head_weights(objective, before, target)
    change, units_of = target.state - last.state, units(last.state.device)
    if said.hit is not None:  # what a hit would add is only known where there was one
        hurt = target.state[..., PERCENT] > before.state[..., PERCENT]
        known = torch.where(hurt, change[..., PERCENT], said.continuous[..., PERCENT].detach())
        change = torch.cat([known[..., None], change[..., PERCENT + 1 :]], dim=-1)
    losses = {}
    for name, block in (("continuous", CONTINUOUS), ("velocity", VELOCITY), ("dynamics", DYNAMICS)):
        truth = (target.state if name == "dynamics" else change)[..., block]
        losses[name] = _regression(objective, getattr(said, name), truth, units_of[block], weights[name])
    losses["binary"] = _bits(said.binary, target.state[..., BINARY], weights["binary"])
    for name, column in zip(CLASSES, CLASS_COLUMNS, strict=True):
        if name in said.classes:
            losses[name] = _classes(said.classes[name], target.ints[..., column], weights[name], objective.unimix)
    if said.age is not None:
        losses["age"] = _age(said.age, change[..., AGE] / SCALE[AGE], weights["age"])
    if said.hit is not None:
        losses["hit"] = _bits(said.hit, hurt[..., None].float(), weights["hit"])
    nothing = Loss(0 * losses["binary"].total, 0 * losses["binary"].count)  # of what the model has no head for
    return {name: losses.get(name, nothing) for name in HEADS}


def head_weights(objective: Objective, before: Frames, target: Frames) -> dict[str, Tensor]:
    """What each head counts of each fighter, from the data alone: (…, 2). before: the true frames before `target`."""
    changed = target.ints[..., ACTION] != before.ints[..., ACTION]
    weights = dict.fromkeys(HEADS, torch.ones(changed.shape, device=changed.device))
    weights["action"] = torch.where(changed, objective.change_weight, 1.0)
    weights["age"] = (~changed).float()
    return weights


def head_counts(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The `count` of each head's loss."""
    sizes = {"continuous": 4, "velocity": 5, "dynamics": 3, "binary": 3}
    return {name: weight.sum() * sizes.get(name, 1) for name, weight in weights.items()}


def _regression(objective: Objective, said: Tensor, truth: Tensor, scale: Tensor, weight: Tensor) -> Loss:
    said, each = said.float(), weight[..., None].expand(truth.shape)
    if objective.regression == "mse":
        return Loss(((said - truth).square() * each).sum(), each.sum())
    return Loss((F.smooth_l1_loss(said / scale, truth / scale, reduction="none", beta=BETA) * each).sum(), each.sum())


def _bits(said: Tensor, truth: Tensor, weight: Tensor) -> Loss:
    each = weight[..., None].expand(truth.shape)
    loss = F.binary_cross_entropy_with_logits(said.float(), truth, reduction="none")
    return Loss((loss * each).sum(), each.sum())


def _classes(logits: Tensor, truth: Tensor, weight: Tensor, unimix: float) -> Loss:
    truth = truth[..., None].clamp(max=logits.shape[-1] - 1)
    right = logits.float().log_softmax(-1).gather(-1, truth)[..., 0]
    if unimix:
        even = torch.full_like(right, math.log(unimix / logits.shape[-1]))
        right = torch.logaddexp(right + math.log1p(-unimix), even)
    return Loss(-(right * weight).sum(), weight.sum())


def _age(said: Tensor, grown: Tensor, weight: Tensor) -> Loss:
    """How many frames the age grows by while an action lasts, and whether it begins again."""
    begins = grown < 0
    rate = F.smooth_l1_loss(said[..., 0].float(), grown.clamp(0, 4), reduction="none") * ~begins
    bit = F.binary_cross_entropy_with_logits(said[..., 1].float(), begins.float(), reduction="none")
    return Loss(((rate + bit) * weight).sum(), weight.sum())
