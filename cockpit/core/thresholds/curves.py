"""What a head reaches over all thresholds, as lines of a chart, and how its scores are spread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cockpit.core.plot.lines import LOOKS, NOWHERE, Line
from cockpit.core.plot.reduce import Points, points_of, reduce
from cockpit.core.series import Floats
from cockpit.core.thresholds.review import HeadReview
from engines.thresholds.objectives import F1
from engines.thresholds.sweep import Sweep

ALARMS = "alarms"
STYLES = {"objective": "run-1", "F1": "run-2", "precision": "run-5", "recall": "run-6", ALARMS: "run-7"}
"""Colour, dash and sign of each: none those of training or validation, and no sign is one of the axis."""
PIXELS = 2048
"""Each curve is kept as first, lowest, highest and last value of so many columns: more than a terminal has."""


def curves(it: HeadReview) -> tuple[Line, ...]:
    """The rates of a head over its thresholds, the objective last, so on top; none where nothing can be judged.

    Of 1,000,000 scores in about a tenth of a second. The sweep is let go: fifteen of them are half a gigabyte.
    """
    head = it.head
    if not it.judged or head.untunable:
        return ()
    sweep = Sweep(head.scores, head.targets, head.quiet)
    counts = sweep.counts
    rates: dict[str, Floats] = {"recall": counts.recall, "precision": counts.precision}
    if head.quiet is not None:
        rates[ALARMS] = counts.alarm_rate
    rates["F1"] = counts.f1
    if head.objective is not F1:
        rates["objective"] = head.objective.value(counts)
    return tuple(_line(name, sweep.scores, values, head.bounds) for name, values in rates.items())


def _line(name: str, scores: Floats, values: Floats, bounds: tuple[float, float]) -> Line:
    """Behind the others as far as the chart knows: exact values stand beside it, where no point is left out."""
    points = _reduced(_steps(scores, values, bounds), bounds)
    style, dash = LOOKS[STYLES[name]]
    return Line(name, style, dash, points.x, points.y, points, NOWHERE, NOWHERE, behind=True)


def _steps(scores: Floats, values: Floats, bounds: tuple[float, float]) -> Points:
    """A curve holds its value up to and with each score, then has the next one."""
    low, high = bounds
    x = np.concatenate([[low], np.repeat(np.clip(scores, low, high), 2), [high]])
    return points_of(x, np.repeat(values, 2))


def _reduced(points: Points, bounds: tuple[float, float]) -> Points:
    low, high = bounds
    columns = reduce(points, PIXELS, low, high)
    x = low + (high - low) * (columns.place + 0.5) / PIXELS
    y = np.column_stack([columns.first, columns.low, columns.high, columns.last])
    gap = np.zeros(y.shape, dtype=np.bool_)
    gap[:, 0] = ~columns.joined
    return Points(np.repeat(x, 4), y.ravel(), gap.ravel())


def histogram(it: HeadReview, bins: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """`(bins,)` each: how many positives and how many negatives score in each equal part of the range.

    The first and the last hold what lies beyond, too. Differences of counts that the tally knows: no score is read.
    """
    low, high = it.head.bounds
    inner = it.tally.at(np.linspace(low, high, bins + 1)[1:-1])
    positives = np.concatenate([[inner.positives], inner.hits, [0]])
    negatives = np.concatenate([[inner.negatives], inner.false_yes, [0]])
    return -np.diff(positives), -np.diff(negatives)
