"""The tables of a finished run: beside what it must beat (the commonest class, the newest label, linear models of what
it sees), what its thresholds do, and how long it takes to answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.training.comparison import comparison
from engines.training.project import Table
from projects.sim.config import SimConfig
from projects.sim.evaluation import SimResult, answer_ms
from projects.sim.items import ItemSource
from projects.sim.labels import ABSENT, LABELS
from projects.sim.losses import ClassWeights, sim_losses
from projects.sim.metrics import confusions, values
from projects.sim.network import SimNetwork
from projects.sim.thresholds import SAFE, guaranteed, rates, search_thresholds
from projects.sim.windows import WindowSource

Source = WindowSource | ItemSource
SHOWN = {
    "risk F1": "risk_f1", "high recall": "risk_high_recall", "reason F1": "reason_f1", "action F1": "action_f1",
    "action accuracy": "action_accuracy",
}  # fmt: skip
LOSSES = {f"{task} loss": task for task in LABELS}
PERFECT = {**dict.fromkeys(SHOWN, 1.0), **dict.fromkeys(LOSSES, 0.0)}
STEPS, RATE, DECAY = 200, 0.05, 1e-3
CHUNK = 512


@dataclass(frozen=True)
class Baseline:
    """Predictions (n, 3) of the validation windows, and mean losses by task; None where it gives no probability."""

    predicted: NDArray[np.int64]
    losses: dict[str, float | None]


def report_tables(
    cfg: SimConfig,
    train: Source,
    validation: Source,
    network: SimNetwork,
    result: SimResult,
    weights: ClassWeights,
    progress: Callable[[float, float, str], None],
) -> dict[str, Table]:
    """The run beside its baselines, the thresholds of high risk, and the time of an answer. network: in eval mode.

    `progress` hears how many parts are done.
    """
    progress(0, 2, "parts")
    print("report: baselines", flush=True)
    run = _scores(result.labels, Baseline(result.predicted, {task: result.values.get(task) for task in LABELS}))
    found = {name: _scores(result.labels, one) for name, one in baselines(train, validation, weights).items()}
    note = (
        f"On {len(validation)} validation windows. Linear models of telemetry, frames and both were trained with this "
        "run's own weighted losses, so their losses compare; the two others give no probability. The last label is one "
        "that a rover does not have. Where telemetry only comes near this run, it may be a leak."
    )
    beside = comparison(run, found, PERFECT, title="", note=note)
    progress(1, 2, "parts")
    return {
        "baselines": beside,
        "risk thresholds": threshold_table(cfg, result.review),
        "speed": speed_table(network, validation, cfg.training.batch_size),
    }


def _scores(labels: NDArray[np.int64], said: Baseline) -> dict[str, float | None]:
    found = values(confusions(labels, said.predicted))
    shown = {title: found[key] for title, key in SHOWN.items()}
    return shown | {title: said.losses[task] for title, task in LOSSES.items()}


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


def threshold_table(cfg: SimConfig, review: Mapping[str, NDArray[Any]]) -> Table:
    """What each threshold of high risk does on the validation windows."""
    found: dict[str, float | None] = dict(search_thresholds(review))
    recall, certainty = cfg.thresholds.recall, cfg.thresholds.certainty
    found["guaranteed"] = guaranteed(review, recall, certainty)
    rows = []
    for name, threshold in found.items():
        done = rates(review, threshold) if threshold is not None else {}
        rows.append((name, threshold, *(done.get(key) for key in ("recall", "precision", "false alarms"))))
    note = (
        f"Guaranteed: the largest threshold with recall ≥ {recall:g} in {certainty:.0%} of resampled recordings "
        f"(thresholds.recall and thresholds.certainty, which change no other row: risk_high_safe is at {SAFE:g}). All "
        "are chosen on the windows that they are shown for."
    )
    if found["guaranteed"] is None:
        note += " Fewer than two recordings have high risk, so nothing can be guaranteed."
    return Table(("threshold", "value", "recall", "precision", "false alarms"), tuple(rows), note)


@torch.inference_mode()
def speed_table(
    network: SimNetwork, source: Source, batch_size: int, clock: Callable[[], float] = time.perf_counter
) -> Table:
    """The time of an answer for one window and for a batch."""
    trained = sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
    layers = network.llm.layers if network.llm is not None else 0
    rows = []
    for count in sorted({1, min(batch_size, len(source))}):
        batch = source.batch(torch.arange(count), None)
        ms = answer_ms(network, batch, clock)
        rows.append((layers, trained, count, ms, ms / count))
    raw = "frames" in batch
    note = (
        f"On {next(network.parameters()).device} with {torch.get_num_threads()} CPU threads, "
        f"{'encoding the frames included' if raw else 'without encoding the frames'}."
    )
    return Table(("layers", "trained", "windows", "ms", "ms a window"), tuple(rows), note)
