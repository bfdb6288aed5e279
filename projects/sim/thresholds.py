"""From which probability on risk counts as high: three thresholds of one score, each for another purpose. Torch-free.

`risk_high` is best by F1; `risk_high_quiet` has the best recall with at most 5 % false alarms; `risk_high_safe` is the
largest that keeps a recall of .9, here on the windows as they are. `guaranteed` says what it keeps on resampled
recordings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.basics.errors import DataError
from engines.thresholds.adapter import Arrays, ThresholdAdapter, Thresholds, Titles, require
from engines.thresholds.head import Head
from engines.thresholds.objectives import F1, Counts, Objective
from engines.thresholds.search import exact_optimum

CONFIG_FILE = "sim_v0.json"
DEFAULT = 0.5
QUIET, SAFE = 0.05, 0.9
"""Largest rate of false alarms, and least recall, of the two objectives with a condition."""
RESAMPLES = 2000


def _false_alarms(counts: Counts) -> NDArray[np.float64]:
    """The share of windows without high risk that raise an alarm."""
    return np.asarray(counts.false_yes / np.maximum(counts.negatives, 1), np.float64)


def _quiet(counts: Counts) -> NDArray[np.float64]:
    alarms = _false_alarms(counts)
    return np.where(alarms <= QUIET, counts.recall, -alarms)


def _safe(counts: Counts) -> NDArray[np.float64]:
    # where recall is enough, the fewer false alarms the better; below it, the nearer the better
    return np.where(counts.recall >= SAFE, 1 - _false_alarms(counts), counts.recall - 1)


OBJECTIVES = {
    "risk_high": F1,
    "risk_high_quiet": Objective(f"recall at false alarms ≤ {QUIET:g}", _quiet),
    "risk_high_safe": Objective(f"fewest false alarms at recall ≥ {SAFE:g}", _safe),
}


class RiskThresholds(ThresholdAdapter):
    """Reviews as `evaluation` makes them, configs as `export` does."""

    file = CONFIG_FILE
    titles = Titles("threshold", "thresholds", "recording", "recordings", "alarms")

    def heads(self, arrays: Arrays) -> list[Head]:
        """The same windows under each objective; every yes without high risk is a false alarm."""
        require(arrays, ("risk_high", "risk_high_target", "groups"))
        targets, groups = arrays["risk_high_target"].astype(bool), arrays["groups"]
        return [
            Head(name, objective, arrays["risk_high"], targets, groups, quiet=~targets)
            for name, objective in OBJECTIVES.items()
        ]

    def defaults(self, config: Mapping[str, Any]) -> dict[str, float]:
        return dict.fromkeys(OBJECTIVES, DEFAULT)

    def read(self, exported: Mapping[str, Any]) -> dict[str, float]:
        try:
            return {name: float(exported["thresholds"][name]) for name in OBJECTIVES}
        except (KeyError, TypeError, ValueError):
            raise DataError(
                f"The exported config has no thresholds {', '.join(OBJECTIVES)}: it is none of ours."
            ) from None

    def write(self, exported: Mapping[str, Any], thresholds: Thresholds) -> dict[str, Any]:
        return {**exported, "thresholds": dict(thresholds)}

    def checkpoint(self, exported: Mapping[str, Any]) -> tuple[int | None, int | None]:
        training = exported.get("training")
        return (training.get("best_epoch"), training.get("best_step")) if isinstance(training, dict) else (None, None)

    def totals(self, arrays: Arrays, thresholds: Thresholds) -> dict[str, float | None]:
        """Recall, precision and false alarms of the first threshold."""
        return rates(arrays, thresholds["risk_high"])


THRESHOLDS = RiskThresholds()


def rates(arrays: Arrays, threshold: float) -> dict[str, float | None]:
    """What a threshold does on the windows of a review; None without support."""
    yes, truth = arrays["risk_high"] >= threshold, arrays["risk_high_target"].astype(bool)
    parts = {"recall": (yes & truth, truth), "precision": (yes & truth, yes), "false alarms": (yes & ~truth, ~truth)}
    return {name: float(part.sum() / of.sum()) if of.any() else None for name, (part, of) in parts.items()}


def search_thresholds(arrays: Arrays) -> dict[str, float]:
    """The best threshold of each objective, .5 where there is nothing to choose by."""
    found = {head.name: exact_optimum(head).threshold for head in THRESHOLDS.heads(arrays) if not head.untunable}
    return {name: float(found.get(name, DEFAULT)) for name in OBJECTIVES}


def guaranteed(arrays: Arrays, recall: float, certainty: float, seed: int = 0) -> float | None:
    """The largest threshold that has `recall` of high risk in a share `certainty` of resampled recordings.

    Recordings with high risk are drawn with replacement, as many as there are; None with fewer than two of them.
    """
    truth = arrays["risk_high_target"].astype(bool)
    scores, groups = arrays["risk_high"][truth], arrays["groups"][truth]
    recordings = [scores[groups == group] for group in np.unique(groups)]
    if len(recordings) < 2:
        return None
    rng = np.random.default_rng(seed)
    largest = np.empty(RESAMPLES)
    for place in range(RESAMPLES):
        drawn = np.concatenate([recordings[k] for k in rng.integers(len(recordings), size=len(recordings))])
        needed = int(np.ceil(recall * len(drawn) - 1e-9))
        largest[place] = np.partition(drawn, len(drawn) - needed)[len(drawn) - needed]
    # a threshold keeps the recall of a draw where it is at most that draw's largest one
    kept = int(np.floor((1 - certainty) * RESAMPLES + 1e-9))
    return float(np.sort(largest)[kept])
