"""A model's predictions beside what the player did, gathered on the device and brought over once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from engines.training.project import Batch, Source
from projects.controls.batches import MASK_NAMES
from projects.controls.layout import CONTROL_SIZE, HEADS
from projects.controls.masks import Masks
from projects.controls.metrics import Prediction, Truth


class Gathered:
    """Predictions and truth of the batches added so far."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Tensor]] = []
        """One a batch."""

    def add(self, outputs: dict[str, Tensor], batch: Batch) -> None:
        self.parts.append(
            {
                **probabilities(outputs),
                "target": batch["target"],
                # the newest history slot of the newest row; a copy, since a view would keep the whole batch in memory
                "previous": batch["features"][:, -1, -CONTROL_SIZE:].clone(),
                **{name: batch[name] for name in MASK_NAMES},
            }
        )

    def arrays(self) -> tuple[Prediction, Truth]:
        kept = {name: torch.cat([part[name] for part in self.parts]).cpu().numpy() for name in self.parts[0]}
        masks = Masks(*(kept[name] for name in MASK_NAMES))
        return Prediction(*(kept[name] for name in HEADS)), Truth(kept["target"], kept["previous"], masks)


def probabilities(outputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The model's `outputs` as `Prediction` has them, one tensor a head."""
    return {
        "action": outputs["action_logits"].sigmoid(),
        "look": outputs["look"],
        "hotbar": outputs["hotbar_logits"].softmax(1),
        "cursor": outputs["cursor"],
        "inv": outputs["inv_click_logits"].sigmoid(),
    }


@torch.inference_mode()
def predict(
    model: nn.Module, source: Source, batch_size: int, edit: Callable[[Batch, Tensor], None] | None = None
) -> tuple[Prediction, Truth]:
    """Predictions of a model in eval mode for every window of `source`, in order and in fp32.

    `edit(batch, indices)` may change the inputs in place before the model sees them.
    """
    gathered = Gathered()
    for indices in torch.arange(len(source)).split(batch_size):  # type: ignore[no-untyped-call]
        batch = source.batch(indices, None)
        if edit is not None:
            edit(batch, indices)
        gathered.add(model(batch["features"], batch["mask"]), batch)
    return gathered.arrays()
