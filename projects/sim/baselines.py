"""What a model must beat: the commonest class, the newest label, and linear models of what it sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from projects.sim.items import ItemSource
from projects.sim.labels import ABSENT, LABELS
from projects.sim.losses import ClassWeights, sim_losses
from projects.sim.windows import WindowSource

Source = WindowSource | ItemSource
STEPS, RATE, DECAY = 200, 0.05, 1e-3
CHUNK = 512


@dataclass(frozen=True)
class Baseline:
    """Predictions (n, 3) of the validation windows, and mean losses by task; None where it gives no probability."""

    predicted: NDArray[np.int64]
    losses: dict[str, float | None]


def baselines(train: Source, validation: Source, weights: ClassWeights) -> dict[str, Baseline]:
    """By name. Those that see frames are left out where these were not encoded beforehand."""
    found = {"majority": _majority(train, validation)}
    if (last := validation.last_labels) is not None:
        commonest = torch.from_numpy(found["majority"].predicted)
        shown = torch.where(last.cpu() == ABSENT, commonest, last.cpu())
        found["last label"] = Baseline(shown.numpy(), dict.fromkeys(LABELS))
    seen = {"telemetry only": _telemetry, "frames only": _frames, "telemetry and frames": _both}
    for name, of in seen.items():
        if name == "telemetry only" or train.features is not None:
            found[name] = _linear(of(train), of(validation), train, validation, weights)
    return found


def _majority(train: Source, validation: Source) -> Baseline:
    commonest = []
    for place in range(len(LABELS)):
        known = train.labels[:, place][train.labels[:, place] != ABSENT]
        commonest.append(int(torch.bincount(known).argmax()) if len(known) else 0)
    return Baseline(np.tile(np.array(commonest), (len(validation), 1)), dict.fromkeys(LABELS))


def _telemetry(source: Source) -> Tensor:
    return source.telemetry


def _frames(source: Source) -> Tensor:
    """The mean features of each window, and the last frame's: what moves is their difference."""
    parts = []
    for indices in torch.split(torch.arange(len(source)), CHUNK):
        features = source.batch(indices, None)["vis_feats"]
        parts.append(torch.cat([features.mean(dim=1), features[:, -1]], dim=1))
    return torch.cat(parts)


def _both(source: Source) -> Tensor:
    return torch.cat([_telemetry(source), _frames(source)], dim=1)


def _linear(seen: Tensor, held_out: Tensor, train: Source, validation: Source, weights: ClassWeights) -> Baseline:
    """A softmax regression per task on what is `seen`, trained with the run's own losses."""
    deviation, mean = torch.std_mean(seen, dim=0, correction=0)
    scale = deviation.where(deviation > 1e-6, torch.ones_like(deviation))
    seen, held_out = ((values - mean) / scale for values in (seen, held_out))
    sizes = [len(names) for names in LABELS.values()]
    matrix = torch.zeros(seen.shape[1], sum(sizes), device=seen.device, requires_grad=True)
    offset = torch.zeros(sum(sizes), device=seen.device, requires_grad=True)
    optimizer = torch.optim.AdamW([matrix, offset], lr=RATE / seen.shape[1] ** 0.5, weight_decay=DECAY)
    targets = _targets(train)
    with torch.enable_grad():
        for _ in range(STEPS):
            losses = sim_losses(_outputs(seen @ matrix + offset, sizes), targets, weights)
            total = torch.stack([loss.total / loss.count.clamp(min=1e-9) for loss in losses.values()]).sum()
            optimizer.zero_grad()
            total.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    with torch.no_grad():
        output = _outputs(held_out @ matrix + offset, sizes)
        losses = sim_losses(output, _targets(validation), weights)
    means = {task: float(losses[task].total / losses[task].count) if losses[task].count else None for task in LABELS}
    predicted = torch.stack([output[f"{task}_logits"].argmax(1) for task in LABELS], dim=1)
    return Baseline(predicted.cpu().numpy(), means)


def _outputs(logits: Tensor, sizes: list[int]) -> dict[str, Tensor]:
    return {f"{task}_logits": part for task, part in zip(LABELS, torch.split(logits, sizes, dim=1), strict=True)}


def _targets(source: Source) -> dict[str, Tensor]:
    """Labels and weights of every window, as in a batch."""
    labels = source.labels
    return {"weight": source.weights, **{f"{task}_id": labels[:, place] for place, task in enumerate(LABELS)}}
