"""The thresholds of high risk: objectives with a condition, and what a threshold keeps on resampled recordings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engines.basics.errors import DataError
from engines.thresholds.search import exact_optimum
from projects.sim.thresholds import THRESHOLDS, guaranteed, rates, search_thresholds


def review(seed: int = 0, count: int = 400, groups: int = 8) -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(seed)
    truth = random.random(count) < 0.25
    scores = 1 / (1 + np.exp(-(random.normal(size=count) + 2.0 * truth - 1)))
    return {"risk_high": scores, "risk_high_target": truth, "groups": random.integers(0, groups, count)}


def test_each_objective_is_met_as_no_other_threshold_does() -> None:
    arrays = review()
    truth, scores = arrays["risk_high_target"], arrays["risk_high"]
    recall, alarms, f1 = {}, {}, {}
    found = search_thresholds(arrays)
    for t in [*scores, *found.values()]:
        yes = scores >= t
        recall[t], alarms[t] = (yes & truth).sum() / truth.sum(), (yes & ~truth).sum() / (~truth).sum()
        f1[t] = 2 * (yes & truth).sum() / (yes.sum() + truth.sum())
    assert f1[found["risk_high"]] == max(f1.values())
    quiet, safe = found["risk_high_quiet"], found["risk_high_safe"]
    assert alarms[quiet] <= 0.05
    assert recall[quiet] == max(recall[t] for t in recall if alarms[t] <= 0.05)
    assert recall[safe] >= 0.9
    assert alarms[safe] == min(alarms[t] for t in alarms if recall[t] >= 0.9)
    assert rates(arrays, safe)["false alarms"] == alarms[safe]


def test_the_guaranteed_threshold_keeps_the_recall_in_95_of_100_draws_and_none_above_does() -> None:
    arrays = review(seed=3)
    threshold = guaranteed(arrays, recall=0.9, certainty=0.95)
    assert threshold is not None
    random = np.random.default_rng(99)
    truth = arrays["risk_high_target"]
    recordings = [arrays["risk_high"][truth & (arrays["groups"] == group)] for group in range(8)]
    kept = dict.fromkeys((threshold, threshold + 0.05), 0)
    for _ in range(2000):
        drawn = np.concatenate([recordings[k] for k in random.integers(8, size=8)])
        for t in kept:
            kept[t] += int((drawn >= t).mean() >= 0.9)
    assert kept[threshold] / 2000 == pytest.approx(0.95, abs=0.04)
    assert kept[threshold + 0.05] < kept[threshold]
    assert threshold < search_thresholds(arrays)["risk_high_safe"]


def test_one_recording_guarantees_nothing() -> None:
    arrays = review() | {"groups": np.zeros(400, np.int64)}
    assert guaranteed(arrays, 0.9, 0.95) is None


def test_without_high_risk_there_is_nothing_to_choose_by() -> None:
    arrays = review() | {"risk_high_target": np.zeros(400, bool)}
    assert search_thresholds(arrays) == dict.fromkeys(("risk_high", "risk_high_quiet", "risk_high_safe"), 0.5)
    assert rates(arrays, 0.5)["recall"] is None


def test_the_review_reads_and_writes_the_exported_config() -> None:
    heads = THRESHOLDS.heads(review())
    assert [head.name for head in heads] == list(search_thresholds(review()))
    assert exact_optimum(heads[0]).threshold == search_thresholds(review())["risk_high"]
    assert all(head.quiet is not None and (head.quiet != head.targets).all() for head in heads)
    found = THRESHOLDS.read({"thresholds": search_thresholds(review())})
    config = {"thresholds": {}, "other": 1, "training": {"best_epoch": 3, "best_step": 9}}
    written = THRESHOLDS.write(config, found | {"risk_high": 0.7})
    assert written["thresholds"]["risk_high"] == 0.7
    assert written["other"] == 1
    assert THRESHOLDS.checkpoint(written) == (3, 9)
    assert set(THRESHOLDS.totals(review(), found)) == {"recall", "precision", "false alarms"}
    with pytest.raises(DataError, match="none of ours"):
        THRESHOLDS.read({"thresholds": {}})
    with pytest.raises(DataError, match="The review lacks groups"):
        THRESHOLDS.heads({name: array for name, array in review().items() if name != "groups"})
