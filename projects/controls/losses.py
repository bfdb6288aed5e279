"""Five masked losses and an idle penalty, each a sum and the number of elements in it.

A head counts only on the frames that its mask keeps, and is divided once by those frames times its outputs. (The
source document multiplies the action term by its mask and again by the mask's mean, which makes it shrink with the
square of the share of gameplay.)
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from engines.training.project import Batch, Context, Loss
from projects.controls.batches import WindowSource
from projects.controls.layout import ACTION, CONTROL_NAMES, CURSOR, HEADS, HOTBAR, INV, LOOK, OPEN_INVENTORY


@dataclass(frozen=True)
class PosWeights:
    """Weights of positive targets; 1 for a control without positives.

    action: (12,). inv: (3,). unsupported: names of the controls without a positive in the training data.
    """

    action: Tensor
    inv: Tensor
    unsupported: tuple[str, ...]

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """As a run keeps them: pos_weights (15,), and the names of the unsupported controls."""
        weights = torch.cat([self.action, self.inv]).cpu().numpy()
        return {"pos_weights": weights, "unsupported": np.array(self.unsupported, np.str_)}


Formula = Literal["neg_pos", "total_2pos"]


def pos_weights(train: WindowSource, formula: Formula = "neg_pos", cap: float = 50.0) -> PosWeights:
    """Weights of each binary control over the frames its loss sees, at most `cap`.

    neg_pos: negatives / positives, with which both weigh the same. total_2pos: frames / (2 · positives), half of that
    and a half: positives weigh less than negatives.
    """
    targets, masks = train.labels()
    inv_mask = masks["screen_open"][:, None].expand(-1, len(INV))
    action, action_names = _balance(targets[:, ACTION], _action_mask(masks), ACTION, formula, cap)
    inv, inv_names = _balance(targets[:, INV], inv_mask, INV, formula, cap)
    return PosWeights(action, inv, action_names + inv_names)


def _balance(
    targets: Tensor, mask: Tensor, columns: tuple[int, ...], formula: Formula, cap: float
) -> tuple[Tensor, tuple[str, ...]]:
    positives, frames = (_pressed(targets) * mask).sum(0), mask.sum(0)
    against = frames - positives if formula == "neg_pos" else frames / 2
    weight = torch.where(positives > 0, (against / positives.clamp(min=1)).clamp(max=cap), 1.0)
    names = tuple(CONTROL_NAMES[column] for column, found in zip(columns, positives.tolist(), strict=True) if not found)
    return weight, names


def _pressed(targets: Tensor) -> Tensor:
    """1 where a button is pressed, else 0, by the same rule as the masks and the metrics."""
    return (targets > 0.5).float()


def _action_mask(masks: Batch) -> Tensor:
    """(batch, 12): gameplay, but every frame for open_inventory, which also closes the screen."""
    return masks["gameplay"][:, None] | _everywhere(masks["gameplay"].device)


@functools.lru_cache(maxsize=8)
def _everywhere(device: torch.device) -> Tensor:
    """(12,) bool, made once: setting one element to a Python value makes the host wait for a GPU."""
    return torch.tensor([place == OPEN_INVENTORY for place in range(len(ACTION))], device=device)


def off_controls(ctx: Context) -> frozenset[str]:
    """Names of the controls that the stage does not train."""
    off: set[str] = set()
    for head, columns in HEADS.items():
        names = {CONTROL_NAMES[column] for column in columns}
        off |= names if head not in ctx.heads else names - ctx.parts.get(head, names)
    return frozenset(off)


@functools.lru_cache(maxsize=64)
def _on(columns: tuple[int, ...], off: frozenset[str], device: torch.device) -> Tensor:
    """(columns,) bool, made once a stage: a tensor of Python values makes the host wait for a GPU."""
    return torch.tensor([CONTROL_NAMES[column] not in off for column in columns], device=device)


@functools.lru_cache(maxsize=64)
def _places(columns: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor(columns, device=device)


def _taken(target: Tensor, columns: tuple[int, ...]) -> Tensor:
    """`target[:, columns]`, which would bring the numbers to a GPU again each time, and wait for it."""
    return target.index_select(1, _places(columns, target.device))


def loss_masks(batch: Batch, off: frozenset[str] = frozenset(), look_rest: float = 0.0) -> dict[str, Tensor]:
    """Which elements of each head's loss count: (batch,) for hotbar, else (batch, outputs).

    One bool an element; of look a number where `look_rest`, the weight of gameplay that does not look around, is set.
    Of action and inv, and of the idle penalty on the actions, the controls named in `off` do not count.
    """
    look = batch["gameplay"] & batch["look_active"]
    if look_rest:
        look = torch.where(look, 1.0, look_rest) * batch["gameplay"]

    def wide(mask: Tensor, width: int) -> Tensor:
        return mask[:, None].expand(-1, width)

    masks = {
        "action": _action_mask(batch),
        "look": wide(look, len(LOOK)),
        "hotbar": batch["hotbar_changed"],
        "cursor": wide(batch["screen_open"], len(CURSOR)),
        "inv": wide(batch["screen_open"], len(INV)),
        "idle": wide(batch["idle"], len(ACTION)),
    }
    if off:
        for head, columns in (("action", ACTION), ("inv", INV), ("idle", ACTION)):
            masks[head] = masks[head] & _on(columns, off, masks[head].device)
    return masks


@dataclass(frozen=True)
class Errors:
    """How errors of look and cursor count: `config.ControlsLoss`."""

    look: Literal["smooth_l1", "mse"] = "smooth_l1"
    look_beta: float = 1.0
    cursor_beta: float | None = None
    look_rest: float = 0.0


def _error(predicted: Tensor, target: Tensor, beta: float | None) -> Tensor:
    if beta is None:
        return F.mse_loss(predicted, target, reduction="none")
    return F.smooth_l1_loss(predicted, target, reduction="none", beta=beta)


def head_losses(
    outputs: dict[str, Tensor],
    batch: Batch,
    weights: PosWeights,
    off: frozenset[str] = frozenset(),
    errors: Errors | None = None,
) -> dict[str, Loss]:
    """The unweighted losses of every head from the model's `outputs`; zero, but attached, where no frame counts.

    The controls named in `off` are left out of sums and counts.

    action and inv: binary cross-entropy. look: smooth L1, or squared error. hotbar: cross-entropy. cursor: squared
    error, or smooth L1. idle: probability of the 12 actions on idle frames.
    """
    errors = errors or Errors()
    target = batch["target"]
    logits = outputs["action_logits"]
    elements = {
        "action": F.binary_cross_entropy_with_logits(
            logits, _pressed(_taken(target, ACTION)), pos_weight=weights.action, reduction="none"
        ),
        "look": _error(outputs["look"], _taken(target, LOOK), errors.look_beta if errors.look == "smooth_l1" else None),
        "hotbar": F.cross_entropy(outputs["hotbar_logits"], _taken(target, HOTBAR).argmax(1), reduction="none"),
        "cursor": _error(outputs["cursor"], _taken(target, CURSOR), errors.cursor_beta),
        "inv": F.binary_cross_entropy_with_logits(
            outputs["inv_click_logits"], _pressed(_taken(target, INV)), pos_weight=weights.inv, reduction="none"
        ),
        "idle": logits.sigmoid(),
    }
    masks = loss_masks(batch, off, errors.look_rest)
    return {name: Loss((masks[name] * value).sum(), masks[name].sum()) for name, value in elements.items()}
