"""What the two charts of a run's overview show: loss and score over the steps done, labelled by epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from cockpit.core.metrics.weight_sets import edited_weights
from cockpit.core.plot.axis import extent
from cockpit.core.plot.frame import Sign, View
from cockpit.core.plot.lines import Look, Member
from cockpit.core.plot.smooth import Smoother
from cockpit.core.run.model import RunModel
from cockpit.core.series import Floats, Series
from cockpit.widgets.metric_chart import Drawing
from engines.contract.events import Epoch
from engines.contract.steps import logged
from engines.runs.history import column_of

Chart = tuple[list[Member], Drawing]
ROUND = [digit * 10**power for power in range(9) for digit in (1, 2, 5)]
LABELS = 7
"""Of epochs on an axis, at most."""


def loss_curves(model: RunModel, smoother: Smoother) -> Chart:
    """Loss of every step, and of every epoch in training and in validation; there with what resumes superseded.

    Behind epochs the steps are smoothed: their noise would hide the curves; the Charts tab has them as they are.
    The title says with which weights it is computed now, where a person has changed them.
    """
    rows = list(model.history.epochs.values())
    loss = model.steps.column("loss")
    told = logged(loss)  # a log from elsewhere may have no loss at all, or not at every step
    loss = smoother.smooth(loss[told]) if rows else loss[told]
    steps = _series("loss", model.steps.column("step")[told], loss)
    train, validation = _of_epochs("train.loss", rows), _of_epochs("validation.loss", rows)
    old = (_of_epochs("validation.loss", tail) for tail in _old_tails(model))
    validation = replace(validation, old=tuple((tail.step, tail.value) for tail in old))
    members, drawing = _chart(model, [("logged", steps), ("train", train), ("validation", validation)])
    return members, replace(drawing, about=edited_weights(model.history.edits_in_force))


def score_curve(model: RunModel) -> Chart:
    """The score of every epoch."""
    return _chart(model, [("score", _of_epochs("score", list(model.history.epochs.values())))])


def _chart(model: RunModel, members: list[Member]) -> Chart:
    """Of what was logged: an empty series is no line."""
    members = [(role, one) for role, one in members if len(one.step) or one.old]
    start, end = extent([one for _, one in members], "step")
    ends = {float(row.step): row.epoch for row in model.history.epochs.values()}
    view = View("step", start, end if end > start else start + 1.0, ticks=_ticks(ends, start, end))
    return members, Drawing(Look(), view, tuple(_signs(model, start, end)), legend=True)


def _old_tails(model: RunModel) -> list[list[Epoch]]:
    """What resumes superseded, one list an attempt."""
    old = sorted(model.history.superseded, key=lambda row: (row.attempt, row.step))
    return [list(rows) for _, rows in groupby(old, key=lambda row: row.attempt)]


def _of_epochs(source: str, rows: Sequence[Epoch]) -> Series:
    """One value an epoch. What was not finite is kept as such; what was not measured is no point at all."""
    value_of = column_of(source)
    told = [(row.step, value) for row in rows if (value := value_of(row)) is not None or source in row.nonfinite]
    step, value = np.array(told, dtype=np.float64).reshape(-1, 2).T  # None is NaN
    return _series(source, step, value)


def _series(name: str, step: Floats, value: Floats) -> Series:
    unknown = np.full(len(step), np.nan)
    return Series(name, step, unknown, unknown, value)


def _signs(model: RunModel, start: float, end: float) -> list[Sign]:
    """A person's edits, resumes, and the best epoch, later ones over earlier ones."""
    history = model.history
    signs = [Sign("resume", float(step)) for step in history.resumes if step]
    signs += [Sign("edit", float(edit.step)) for edit in history.edits()]
    if history.best is not None:
        signs.append(Sign("best", float(history.best.step)))
    return [sign for sign in signs if start <= sign.x <= end]


def _ticks(ends: Mapping[float, int], start: float, end: float) -> tuple[tuple[float, str], ...]:
    """A handful of the ends of epochs, with round numbers; an empty tuple leaves the axis its steps."""
    inside = [(x, epoch) for x, epoch in ends.items() if start <= x <= end]
    every = next(step for step in ROUND if len(inside) <= step * LABELS)
    return tuple((x, str(epoch)) for x, epoch in inside if epoch % every == 0 or len(inside) == 1)
