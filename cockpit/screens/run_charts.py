"""Which curves and marks a run's charts show."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from cockpit.core.model import RunModel
from cockpit.widgets.chart import Line, Mark, numbers
from engines.contract.events import Epoch
from engines.contract.history import column_value
from engines.contract.steps import logged

Chart = tuple[list[Line], list[Mark], Mapping[float, int]]


def loss_curves(model: RunModel) -> Chart:
    """Loss over the steps done: in training of every step (faint once there are epochs) and epoch, in validation."""
    rows = list(model.history.epochs.values())
    loss = model.steps.column("loss")
    told = logged(loss)  # a log from elsewhere may have no loss at all, or not at every step
    lines = [_line("old", old, "validation.loss") for old in _old_tails(model)]
    lines += [
        Line("step" if rows else "train", model.steps.column("step")[told], loss[told], leads=False),
        _line("train", rows, "train.loss"),
        _line("validation", rows, "validation.loss"),
    ]
    return lines, _marks(model), _epoch_ticks(model)


def _old_tails(model: RunModel) -> list[list[Epoch]]:
    """What resumes superseded, one list an attempt."""
    old = sorted(model.history.superseded, key=lambda row: (row.attempt, row.step))
    return [list(rows) for _, rows in groupby(old, key=lambda row: row.attempt)]


def score_curve(model: RunModel) -> Chart:
    """The score of every epoch, over the steps done."""
    line = _line("score", list(model.history.epochs.values()), "score")
    return [line], _marks(model), _epoch_ticks(model)


def _line(kind: str, rows: list[Epoch], source: str) -> Line:
    """One value an epoch. What was not finite is a gap; what was not measured is no point at all."""
    values = [(row.step, column_value(source, row), source in row.nonfinite) for row in rows]
    told = [(step, value) for step, value, bad in values if bad or value is not None]
    return Line(kind, numbers([step for step, _ in told]), numbers([value for _, value in told]), leads=kind != "old")


def _marks(model: RunModel) -> list[Mark]:
    """A person's edits, resumes, and the best epoch, later ones over earlier ones."""
    history = model.history
    marks = [Mark("resume", "↻", float(step)) for step in history.resumes if step]
    marks += [Mark("edit", "▲", float(edit.step)) for edit in history.edits()]
    if history.best is not None:
        marks.append(Mark("best", "★", float(history.best.step)))
    return marks


def _epoch_ticks(model: RunModel) -> dict[float, int]:
    return {float(row.step): row.epoch for row in model.history.epochs.values()}
