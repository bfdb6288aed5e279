"""What a SIM run is scored by. Everything comes from one confusion matrix per task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.training.project import Cell, Table
from projects.sim.labels import ABSENT, HIGH, LABELS

COMPOSITE = {"risk_high_recall": 0.4, "risk_f1": 0.3, "action_accuracy": 0.3}
"""Shares of the composite score; what has no support is left out and the others count for more."""


@dataclass(frozen=True)
class Confusion:
    """counts: (classes, classes), truth by row, prediction by column, of the samples that have a label."""

    counts: NDArray[np.int64]

    @classmethod
    def of(cls, truth: NDArray[np.int64], predicted: NDArray[np.int64], classes: int) -> Confusion:
        """From labels (n,), -1 where there is none, and predictions (n,)."""
        known = truth != ABSENT
        pairs = truth[known] * classes + predicted[known]
        return cls(np.bincount(pairs, minlength=classes * classes).reshape(classes, classes))

    @property
    def accuracy(self) -> float | None:
        return _ratio(np.trace(self.counts), self.counts.sum())

    @property
    def macro_f1(self) -> float | None:
        """The mean F1 of the classes that occur in truth or prediction."""
        occurs = self.counts.sum(0) + self.counts.sum(1)
        f1 = 2 * np.diag(self.counts)[occurs > 0] / occurs[occurs > 0]
        return float(f1.mean()) if len(f1) else None

    def recall(self, of: int) -> float | None:
        """None without a positive."""
        return _ratio(self.counts[of, of], self.counts[of].sum())

    def precision(self, of: int) -> float | None:
        """None without a prediction of it."""
        return _ratio(self.counts[of, of], self.counts[:, of].sum())


def _ratio(part: np.int64, whole: np.int64) -> float | None:
    return float(part / whole) if whole else None


def confusions(labels: NDArray[np.int64], predicted: NDArray[np.int64]) -> dict[str, Confusion]:
    """By task, from (n, 3) each."""
    return {
        task: Confusion.of(labels[:, place], predicted[:, place], len(names))
        for place, (task, names) in enumerate(LABELS.items())
    }


def values(found: Mapping[str, Confusion]) -> dict[str, float | None]:
    """The metrics by name; None without support."""
    risk = found["risk"]
    recall = risk.recall(HIGH)
    return {
        "risk_high_recall": recall,
        "risk_high_fn_rate": None if recall is None else 1 - recall,
        "risk_high_precision": risk.precision(HIGH),
        **{f"{task}_f1": one.macro_f1 for task, one in found.items()},
        **{f"{task}_accuracy": one.accuracy for task, one in found.items()},
    }


def composite(metrics: Mapping[str, float | None]) -> float | None:
    """The score of an epoch; None where nothing of it has support."""
    known = [(share, value) for name, share in COMPOSITE.items() if (value := metrics[name]) is not None]
    return sum(share * value for share, value in known) / sum(share for share, _ in known) if known else None


def class_table(found: Mapping[str, Confusion]) -> Table:
    """Every class of every task: support, recall, precision, F1."""
    rows: list[tuple[Cell, ...]] = []
    for task, names in LABELS.items():
        counts = found[task].counts
        for of, name in enumerate(names):
            occurs = counts[of].sum() + counts[:, of].sum()
            f1 = _ratio(2 * counts[of, of], occurs)
            rows.append((task, name, int(counts[of].sum()), found[task].recall(of), found[task].precision(of), f1))
    without = [f"{row[0]} {row[1]}" for row in rows if not row[2]]
    note = f"No validation window is {', '.join(without)}: what is said of them rests on nothing." if without else ""
    return Table(("task", "class", "windows", "recall", "precision", "F1"), tuple(rows), note)


def confusion_table(task: str, confusion: Confusion) -> Table:
    """Truth by row, prediction by column."""
    names = LABELS[task]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *map(int, row)) for name, row in zip(names, confusion.counts, strict=True)
    )
    return Table(("truth ↓ predicted →", *names), rows)
