"""The tables of a finished run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.training.project import Cell, Table
from projects.sim.baselines import Source, baselines
from projects.sim.config import SimConfig
from projects.sim.evaluation import SimResult
from projects.sim.labels import LABELS
from projects.sim.losses import ClassWeights
from projects.sim.metrics import confusions, values
from projects.sim.thresholds import guaranteed, rates, search_thresholds

SHOWN = {
    "risk F1": "risk_f1", "high recall": "risk_high_recall", "reason F1": "reason_f1", "action F1": "action_f1",
    "action accuracy": "action_accuracy",
}  # fmt: skip


def report_tables(
    cfg: SimConfig, train: Source, validation: Source, result: SimResult, weights: ClassWeights
) -> dict[str, Table]:
    """The run beside its baselines, and the thresholds of high risk."""
    print("report: baselines", flush=True)
    rows = [_row("this run", result.labels, result.predicted, {task: result.values.get(task) for task in LABELS})]
    for name, one in baselines(train, validation, weights).items():
        rows.append(_row(name, result.labels, one.predicted, one.losses))
    columns = ("", *SHOWN, *(f"{task} loss" for task in LABELS))
    note = (
        f"On {len(validation)} validation windows. Linear models of telemetry, frames and both were trained with this "
        "run's own weighted losses, so their losses compare; the two others give no probability. The last label is one "
        "that a rover does not have. Where telemetry only comes near this run, it may be a leak."
    )
    return {"baselines": Table(columns, tuple(rows), note), "risk thresholds": threshold_table(cfg, result.review)}


def _row(
    name: str, labels: NDArray[np.int64], predicted: NDArray[np.int64], losses: Mapping[str, Any]
) -> tuple[Cell, ...]:
    found = values(confusions(labels, predicted))
    return (name, *(found[key] for key in SHOWN.values()), *(losses[task] for task in LABELS))


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
        f"Guaranteed: the largest threshold with recall ≥ {recall:g} in {certainty:.0%} of resampled recordings. All "
        "are chosen on the windows that they are shown for."
    )
    if found["guaranteed"] is None:
        note += " Fewer than two recordings have high risk, so nothing can be guaranteed."
    return Table(("threshold", "value", "recall", "precision", "false alarms"), tuple(rows), note)
