"""Exact thresholds of 1,000,000 × 15 scores against the source document's loop over fixed values.

That loop searches each control alone: for each of the 17 values .10, .15 … .90 it takes the sigmoid of all logits
again, compares, and computes F1 and the false-positive rate on idle frames.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Measurement
from engines.thresholds.grid import GRID
from engines.thresholds.head import Head
from engines.thresholds.objectives import ALARM_WEIGHT, F1_LESS_ALARMS
from engines.thresholds.search import exact_optimum
from engines.thresholds.sweep import Sweep

ROWS, CONTROLS = 1_000_000, 15
ROUNDS = 3
SEED = 7

Bools = NDArray[np.bool_]
Scores = NDArray[np.float32]


@dataclass(frozen=True)
class Frames:
    """logits, scores, targets: (rows, controls). idle: (rows,)."""

    logits: Scores
    scores: Scores
    targets: Bools
    idle: Bools

    @property
    def nbytes(self) -> int:
        """What the exact search is given."""
        return self.scores.nbytes + self.targets.nbytes + self.idle.nbytes


def frames(rows: int, shape: Callable[[Scores], Scores] = lambda logits: logits, rarest: float = 0.001) -> Frames:
    """Controls pressed from 30 % of the time down to `rarest`; `shape` bends their logits."""
    random = np.random.default_rng(SEED)
    targets = random.random((rows, CONTROLS)) < np.geomspace(0.3, rarest, CONTROLS)
    logits = shape(1.5 * random.standard_normal((rows, CONTROLS), np.float32) + 2.5 * targets.astype(np.float32) - 2)
    idle = (random.random(rows) < 0.5) & ~targets.any(axis=1)
    return Frames(logits, _sigmoid(logits), targets, idle)


def _sigmoid(logits: Scores) -> Scores:
    scores: Scores = np.reciprocal(1 + np.exp(-logits))
    return scores


def exact(data: Frames) -> list[float]:
    """The best threshold of each control."""
    return [exact_optimum(head).threshold for head in _heads(data)]


def _heads(data: Frames) -> Iterator[Head]:
    groups = np.zeros(len(data.idle), np.int64)
    for k in range(CONTROLS):
        scores, targets = np.ascontiguousarray(data.scores[:, k]), np.ascontiguousarray(data.targets[:, k])
        yield Head(str(k), F1_LESS_ALARMS, scores, targets, groups, data.idle)


def loop(data: Frames, *, hoisted: bool = False) -> list[float]:
    """The fixed values one by one, as the document has it; `hoisted` takes the sigmoid of a control once."""
    thresholds = []
    for control in range(CONTROLS):
        scores = _sigmoid(data.logits[:, control])
        best, best_threshold = 0.0, 0.5
        for threshold in GRID:
            predictions = (scores if hoisted else _sigmoid(data.logits[:, control])) > threshold
            value = _f1(predictions, data.targets[:, control]) - ALARM_WEIGHT * float(predictions[data.idle].mean())
            if value > best:
                best, best_threshold = value, float(threshold)
        thresholds.append(best_threshold)
    return thresholds


def _f1(predictions: Bools, targets: Bools) -> float:
    hits = int(np.count_nonzero(predictions & targets))
    false_yes = int(np.count_nonzero(predictions & ~targets))
    missed = int(np.count_nonzero(~predictions & targets))
    return 2 * hits / max(1, 2 * hits + false_yes + missed)


def objectives(data: Frames, thresholds: list[float], *, inclusive: bool) -> NDArray[np.float64]:
    """(controls,): what thresholds reach, counted plainly, with the comparison that each search means."""
    values = []
    for k, threshold in enumerate(thresholds):
        scores = data.scores[:, k].astype(np.float64)
        on = scores >= threshold if inclusive else scores > threshold
        values.append(_f1(on, data.targets[:, k]) - ALARM_WEIGHT * float(on[data.idle].mean()))
    return np.array(values)


def check_never_worse() -> float:
    """The largest gain in objective over the loop on hard data; raises AssertionError where the loop wins anywhere."""
    rows = 100_000
    hard = {
        "smooth": frames(rows),
        "ties": frames(rows, lambda logits: logits // 1),
        "skewed": frames(rows, lambda logits: logits - 6),
        "saturated": frames(rows, lambda logits: logits * 8),
        "tiny classes": frames(rows, rarest=3 / rows),
    }
    gains = []
    for name, data in hard.items():
        ours, theirs = objectives(data, exact(data), inclusive=True), objectives(data, loop(data), inclusive=False)
        assert (ours >= theirs - 1e-12).all(), f"{name}: the loop found a better objective"
        gains.append(float((ours - theirs).max()))
    return max(gains)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _peak_ratio(data: Frames) -> float:
    """Most memory in use at once, the input itself included, over the input's size."""
    tracemalloc.start()
    exact(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (data.nbytes + peak) / data.nbytes


def _cursor_milliseconds(data: Frames) -> float:
    head = next(_heads(data))
    sweep = Sweep(head.scores, head.targets, head.quiet)
    return 1000 * statistics.median(_seconds(lambda t=t: sweep.at(t).f1) for t in np.linspace(0, 1, 101))  # type: ignore[misc]


def measure() -> list[Measurement]:
    gain = check_never_worse()
    data = frames(ROWS)
    assert (
        objectives(data, exact(data), inclusive=True) >= objectives(data, loop(data), inclusive=False) - 1e-12
    ).all()
    times = [[_seconds(lambda run=run: run(data)) for run in (exact, loop, _hoisted)] for _ in range(ROUNDS)]  # type: ignore[misc]
    ours, verbatim, hoisted = (statistics.median(column) for column in zip(*times, strict=True))
    size = f"{ROWS:,} × {CONTROLS} scores, median of {ROUNDS} interleaved rounds, one thread"
    never = f"never a worse objective on smooth, tied, skewed, saturated and tiny classes; up to {gain:.3f} better"
    return [
        _measurement("thresholds", ours, verbatim, "s", "≥ 10", f"{size}; {never}"),
        _measurement("thresholds, sigmoid hoisted", ours, hoisted, "s", "—", "the loop with one sigmoid a control"),
        _measurement("thresholds, peak memory", _peak_ratio(data), 3.0, "× input", "≥ 1", "the input is counted in"),
        _measurement(
            "thresholds, cursor", _cursor_milliseconds(data), 50.0, "ms", "≥ 1", "counts and F1 at a threshold"
        ),
    ]


def _hoisted(data: Frames) -> list[float]:
    return loop(data, hoisted=True)


def _measurement(name: str, ours: float, theirs: float, unit: str, reach: str, note: str) -> Measurement:
    return Measurement(name=name, ours=ours, theirs=theirs, unit=unit, ratio=theirs / ours, reach=reach, note=note)
