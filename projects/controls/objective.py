"""The losses of a run, as its config wants them."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from engines.training.project import Batch, Context, Loss
from projects.controls.config import ControlsLoss
from projects.controls.layout import LOOK
from projects.controls.losses import PosWeights, head_losses, loss_masks, off_controls


def run_losses(
    outputs: dict[str, Tensor], batch: Batch, weights: PosWeights, ctx: Context, settings: ControlsLoss
) -> dict[str, Loss]:
    """The unweighted losses of the heads that are on, of the model's `outputs` for `batch`."""
    off = off_controls(ctx)
    losses = head_losses(outputs, batch, weights, off)
    if settings.look == "mse":
        mask = loss_masks(batch, off)["look"]
        errors = F.mse_loss(outputs["look"], batch["target"][:, LOOK[0] : LOOK[-1] + 1], reduction="none")
        losses["look"] = Loss((mask * errors).sum(), mask.sum())
    return {name: loss for name, loss in losses.items() if name in ctx.heads}
