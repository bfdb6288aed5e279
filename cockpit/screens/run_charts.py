"""Which curves and marks a run's charts show."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.core.model import RunModel
from cockpit.widgets.chart import Line, Mark, numbers

Chart = tuple[list[Line], list[Mark], Mapping[float, int]]


def loss_curves(model: RunModel) -> Chart:
    """Loss over the steps done: in training of every step (faint once there are epochs) and epoch, in validation."""
    rows = list(model.history.epochs.values())
    ends = numbers([row.step for row in rows])
    lines = [
        Line("step" if rows else "train", model.steps.column("step") + 1, model.steps.column("loss"), leads=False),
        Line("train", ends, numbers([row.train.get("loss") for row in rows])),
        Line("validation", ends, numbers([row.validation.get("loss") for row in rows])),
    ]
    return lines, _marks(model), _epoch_ticks(model)


def score_curve(model: RunModel) -> Chart:
    """The score of every epoch, over the steps done."""
    rows = list(model.history.epochs.values())
    line = Line("score", numbers([row.step for row in rows]), numbers([row.score for row in rows]))
    return [line], _marks(model), _epoch_ticks(model)


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
