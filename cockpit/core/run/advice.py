"""What ten more epochs would bring and cost: the expected gain of the best score, with its uncertainty.

The recent scores are fitted by least squares with a + b·f(t), t the epoch of the stage: f = ln t, which grows for
ever, and f = 1/t, which comes to an end; each over the last six epochs and over the newer half of all. Of each of the
four fits paths of the coming scores are drawn from its predictive distribution under the usual flat prior,

    σ² ~ (n − 2) s² / χ²(n − 2),   (a, b) | σ² ~ N(fit, σ² (XᵀX)⁻¹),   score = a + b·f(t) + N(0, σ²)

(Gelman et al., Bayesian Data Analysis, 3rd ed., 14.2), and the gain of a path is how far its best exceeds the best so
far, at least 0. All fits count alike: which of them is right decides more than any fit's own uncertainty. How it does
on real curves is in docs/alerts.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cockpit.core.run.progress import RECENT_EPOCHS
from engines.basics.amounts import duration, money
from engines.runs.history import History

Floats = npt.NDArray[np.float64]
Shape = Callable[[Floats], Floats]

AHEAD = 10
"""Epochs that are looked ahead."""
LEAST_SCORES = 8
SHORT = 6
INTERVAL = (0.1, 0.5, 0.9)
"""Four predictions in five are to hold."""
DRAWS = 300
"""Paths of each fit."""
SHAPES: tuple[Shape, ...] = (np.log, np.reciprocal)


@dataclass(frozen=True)
class Gain:
    """Of the best score, in `AHEAD` epochs: between `low` and `high` four times in five."""

    low: float
    middle: float
    high: float

    def __str__(self) -> str:
        """`+0.002 to +0.011`, or `none` for less than a ten-thousandth."""
        if self.high < 1e-4:
            return "none"
        places = max(0, 1 - math.floor(math.log10(self.high)))
        digits = f".{places}f" if self.high < 1e6 else ".1e"
        return f"+{self.low:{digits}} to +{self.high:{digits}}"


@dataclass(frozen=True)
class Advice:
    """What `AHEAD` more epochs are expected to bring and to cost (seconds; US dollars, None without a price)."""

    gain: Gain
    best: float
    best_epoch: int
    seconds: float
    usd: float | None

    def __str__(self) -> str:
        """`10 more epochs: best +0.002 to +0.011 (80 %), 25 m, $1.24`."""
        price = f", {money(self.usd)}" if self.usd is not None else ""
        return f"{AHEAD} more epochs: best {self.gain} (80 %), {duration(self.seconds)}{price}"


def expected_gain(scores: Sequence[float], ahead: int = AHEAD) -> Gain | None:
    """The gain that `scores`, one an epoch, let expect; None for fewer than eight, or where it is beyond any number.

    The same scores give the same answer.
    """
    known = np.asarray(scores, dtype=np.float64)
    if len(known) < LEAST_SCORES:
        return None
    _, exponent = np.frexp(np.abs(known).max())  # squares of enormous scores would overflow; a power of two is exact
    known = np.ldexp(known, -exponent)
    random = np.random.default_rng(0)
    windows = SHORT, max(LEAST_SCORES, len(known) // 2)
    best = np.concatenate([_paths(known, ahead, window, f, random).max(1) for window in windows for f in SHAPES])
    gains = np.quantile(np.maximum(best - known.max(), 0.0), INTERVAL)
    with np.errstate(over="ignore"):
        low, middle, high = np.ldexp(gains, exponent)
    return Gain(float(low), float(middle), float(high)) if np.isfinite(high) else None


def _paths(known: Floats, ahead: int, window: int, shape: Shape, random: np.random.Generator) -> Floats:
    """Scores that one fit lets expect: `(DRAWS, ahead)`."""
    last = len(known)
    seen, coming = (
        np.stack([np.ones(len(t)), shape(t)], 1)
        for t in (np.arange(last - window + 1.0, last + 1.0), np.arange(last + 1.0, last + ahead + 1.0))
    )
    q, r = np.linalg.qr(seen)
    fit = np.linalg.solve(r, q.T @ known[-window:])
    rest = known[-window:] - seen @ fit
    sigma = np.sqrt(rest @ rest / random.chisquare(window - 2, DRAWS))[:, None]
    drawn = fit + sigma * random.standard_normal((DRAWS, 2)) @ np.linalg.inv(r).T
    paths: Floats = drawn @ coming.T + sigma * random.standard_normal((DRAWS, ahead))
    return paths


def advise(history: History, usd_per_hour: float) -> Advice | None:
    """Advice on a run's newest stage; None while it has fewer than eight scored epochs."""
    stage = history.of_stage
    scores = [(row.score, row.epoch) for row in stage if row.score is not None]
    gain = expected_gain([score for score, _ in scores])
    if gain is None:
        return None
    best, epoch = max(scores, key=lambda one: (one[0], -one[1]))
    recent = [row.seconds for row in stage[-RECENT_EPOCHS:]]
    seconds = AHEAD * sum(recent) / len(recent)
    return Advice(gain, best, epoch, seconds, seconds / 3600 * usd_per_hour if usd_per_hour > 0 else None)
