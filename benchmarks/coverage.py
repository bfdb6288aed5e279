"""How often resampling covers the best threshold of the population, by the number of validation sessions.

Sessions differ in their offset, and inside a session scores drift over seconds. The population is 1,000 more sessions.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.measure import Measurement
from engines.thresholds.bootstrap import certainty
from engines.thresholds.head import Head, blocks_of
from engines.thresholds.objectives import F1
from engines.thresholds.search import exact_optimum

FRAMES, BLOCK, DRIFT = 1200, 200, 100
POPULATION, TRIALS, RESAMPLES = 1000, 400, 200
TODAY = {2: 0.60, 4: 0.77, 8: 0.94}
"""What intervals over whole sessions and 256 cuts reached on another data set."""
WANTED = {2: 0.75, 4: 0.85, 8: 0.98}
"""Of regret sets."""


def sessions(number: int, seed: int) -> Head:
    random = np.random.default_rng(seed)
    n = number * FRAMES
    groups = np.repeat(np.arange(number), FRAMES)
    targets = np.repeat(random.random(n // 10) < 0.1, 10)  # a press lasts ten frames
    offsets = np.repeat(random.normal(0, 0.3, number), FRAMES) + np.repeat(random.normal(0, 0.5, n // DRIFT), DRIFT)
    logits = 1.2 * random.normal(size=n) + 3 * targets - 2 + offsets
    scores = 1 / (1 + np.exp(-logits))
    return Head("x", F1, scores, targets, groups, blocks=blocks_of(groups, BLOCK))


def measure() -> list[Measurement]:
    best = exact_optimum(sessions(POPULATION, seed=1)).threshold
    measurements = []
    for number, wanted in WANTED.items():
        found = [certainty(sessions(number, seed), RESAMPLES).regret_set for seed in range(100, 100 + TRIALS)]
        inside = [it is not None and it.low <= best <= it.high for it in found]
        width = float(np.mean([it.high - it.low for it in found if it]))
        share = float(np.mean(inside))
        error = 2 * math.sqrt(share * (1 - share) / TRIALS)
        note = (
            f"{TRIALS} trials, ± {error:.3f}; mean width {width:.3f}; an earlier data set's whole-session intervals: "
            f"{TODAY[number]}"
        )
        measurements.append(
            Measurement(
                name=f"coverage, {number} sessions", ours=share, theirs=wanted, unit="covered", ratio=share / wanted,
                reach="≥ 1", note=note,
            )
        )  # fmt: skip
    return measurements
