"""What the charts of a run's overview show over the steps done, labelled by epochs: loss, score, other values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from cockpit.core.metrics.weight_sets import edited_weights
from cockpit.core.plot.axis import extent
from cockpit.core.plot.frame import Sign, View
from cockpit.core.plot.groups import LEADING, Role, grouped
from cockpit.core.plot.lines import Look, Member
from cockpit.core.run.model import RunModel
from cockpit.core.series import Floats, Series
from cockpit.widgets.metric_chart import Drawing
from engines.contract.events import Epoch
from engines.contract.steps import logged
from engines.runs.history import column_of

Chart = tuple[list[Member], Drawing]
ROUND = [digit * 10**power for power in range(9) for digit in (1, 2, 5)]
SMOOTHING = 0.98
"""Of the loss of the steps."""
LABELS = 7
"""Of epochs on an axis, at most."""


def overview_charts(model: RunModel, most: int = 2) -> dict[str, Chart]:
    """At most `most` by name, loss and score first, on one axis: what is above one another happened at one time."""
    rows = list(model.history.epochs.values())
    loss = _loss(model, rows)
    score: list[Member] = [("score", _of_epochs("score", rows, model))]
    members: list[list[Member]] = [
        [(role, one) for role, one in group if len(one.step) or one.old or one.before] for group in (loss, score)
    ]
    start, end = extent([one for group in members for _, one in group], "step")
    view = View("step", start, end if end > start else start + 1.0, ticks=_ticks(_ends(model), start, end))
    drawing = Drawing(Look(smoothing=SMOOTHING), view, tuple(_signs(model, start, end)), legend=True)
    about = edited_weights(model.history.edits_in_force)
    charts = {"Loss": (members[0], replace(drawing, about=about)), "Score": (members[1], drawing)}
    for name, group in list(_others(model, rows).items())[: max(0, most - len(charts))]:
        series = [(role, _of_epochs(source, rows, model)) for role, source in group]
        charts[name] = series, replace(drawing, legend=False)
    return charts


def _others(model: RunModel, rows: Sequence[Epoch]) -> dict[str, list[tuple[Role, str]]]:
    """Charts of what the epochs hold beside loss and score, those of the table's columns first."""
    started, newest = model.history.started, rows[-1] if rows else None
    if started is None or newest is None:
        return {}
    held = [f"{part}.{key}" for part in ("train", "validation") for key in getattr(newest, part)]
    columns = [column.source for column in started.columns if column.source in held]
    charts = grouped(dict.fromkeys([*columns, *held]))
    return {name: group for name, group in charts.items() if name not in LEADING}


def _loss(model: RunModel, rows: Sequence[Epoch]) -> list[Member]:
    """Loss of every step, and of every epoch in training and in validation; there with what resumes superseded.

    The title of its chart says with which weights it is computed now, where a user has changed them.
    """
    step, loss = model.steps.column("step"), model.steps.column("loss")
    told = logged(loss)
    if not told.all():  # a log from elsewhere may have no loss at all, or not at every step
        step, loss = step[told], loss[told]
    steps = _series("loss", step, loss, model.before)
    train, validation = _of_epochs("train.loss", rows, model), _of_epochs("validation.loss", rows, model)
    old = (_of_epochs("validation.loss", tail) for tail in _old_tails(model))
    validation = replace(validation, old=tuple((tail.step, tail.value) for tail in old))
    return [("logged", steps), ("train", train), ("validation", validation)]


def _ends(model: RunModel) -> dict[float, int]:
    """Epochs by the steps that they end at, those of a fork's parents among them."""
    parents = next((one for one in model.before.values() if one.by_epoch), None)
    ends = {} if parents is None else dict(zip(parents.step.tolist(), map(int, parents.epoch), strict=True))
    return ends | {float(row.step): row.epoch for row in model.history.epochs.values()}


def _old_tails(model: RunModel) -> list[list[Epoch]]:
    """What resumes superseded, one list an attempt."""
    old = sorted(model.history.superseded, key=lambda row: (row.attempt, row.step))
    return [list(rows) for _, rows in groupby(old, key=lambda row: row.attempt)]


def _of_epochs(source: str, rows: Sequence[Epoch], model: RunModel | None = None) -> Series:
    """One value an epoch. What was not finite is kept as such; what was not measured is no point at all."""
    value_of = column_of(source)
    told = [
        (row.step, row.epoch, value) for row in rows if (value := value_of(row)) is not None or source in row.nonfinite
    ]
    step, epoch, value = np.array(told, dtype=np.float64).reshape(-1, 3).T  # None is NaN
    before = model.before.get(source) if model is not None else None
    return Series(source, step, epoch, np.full(len(step), np.nan), value, before=before)


def _series(name: str, step: Floats, value: Floats, before: Mapping[str, Series]) -> Series:
    unknown = np.broadcast_to(np.nan, len(step))
    return Series(name, step, unknown, unknown, value, before=before.get(name))


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
