"""The metrics of a run of ours for charts: every column of its steps, every value of its epochs, and its marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import get_args

import numpy as np

from cockpit.core.metrics.steps import StepFollower, Steps
from cockpit.core.metrics.weight_sets import edited_weights
from cockpit.core.series import Floats, Mark, MarkKind, Series
from engines.basics.errors import UserError
from engines.contract.commands import Edit, SetLossWeights
from engines.contract.events import Checkpoint, CommandAnswer, Epoch, Event, RunStarted
from engines.contract.rundir import RunDirectory
from engines.contract.steps import DATA_WAIT, logged
from engines.runs.history import History, column_of
from engines.runs.state import RunReader

NO_METRICS = ("step", "attempt", "epoch", "time", DATA_WAIT)
"""Columns of step records that say where a value belongs, or what the System tab shows; all others are metrics."""
TELLING = RunStarted | Epoch | Checkpoint | CommandAnswer
"""Events that a chart may show."""
ALWAYS_REPLACED = {"last.pt", "best.pt"}


class RunMetrics:
    """A `MetricSource` of a run directory, with the run's marks."""

    def __init__(self, run: RunDirectory, title: str) -> None:
        self.title = title
        self._steps = StepFollower(run.steps, everything=True)
        self._reader = RunReader(run)
        self._starts: list[RunStarted] = []
        self._edits: dict[str, CommandAnswer] = {}
        self._problem = ""
        self._run = run
        self._family: Mapping[str, Series] | None = None
        """Of a fork: what its parent, and the parent's, had up to where it began. Read once, before anything else."""

    # -- following -------------------------------------------------------------------------------------------------

    def poll(self) -> bool:
        """Read what is new; whether anything changed. Never raises for what the files hold."""
        before = self._problem
        self._problem = ""
        changed = False
        try:
            if self._family is None:
                self._family = family(self._run)
            history = self._reader.history
            events = self._reader.poll()
            if self._reader.history is not history:
                self._starts.clear()
                self._edits.clear()
            for event in events:
                self._note(event)
            changed = self._steps.poll() or any(isinstance(event, TELLING) for event in events)
        except (UserError, OSError) as error:
            self._problem = str(error)
        return changed or self._problem != before

    def _note(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._starts.append(event)
            case CommandAnswer() if event.state == "applied" and isinstance(event.command, get_args(Edit)):
                self._edits.setdefault(event.command.id, event)

    def problems(self) -> Sequence[str]:
        return [words for words in (self._reader.damage, self._problem) if words]

    @property
    def _history(self) -> History:
        return self._reader.history

    # -- series ----------------------------------------------------------------------------------------------------

    def series(self) -> Mapping[str, Series]:
        """The score and the epochs' values by `train.<key>` and `validation.<key>`, then the steps' columns."""
        rows = list(self._history.epochs.values())
        tails = _old_tails(self._history)
        sources = dict.fromkeys(source for row in rows for source in _sources(row))
        made = {source: _of_epochs(source, rows, tails) for source in sources}
        made |= {name: one for name, one in self._of_steps().items() if name not in made}
        for name, before in (self._family or {}).items():
            if name in made:
                made[name] = replace(made[name], before=before)
        return made

    def line_to(self, step: int) -> dict[str, Series]:
        """Each metric until `step` steps were done, of all runs that led there."""
        line = {}
        sources = {source for row in self._history.epochs.values() for source in _sources(row)}
        for name, one in self.series().items():
            until = one.step <= step if name in sources else one.step < step  # an epoch stands behind its last step
            parts = [Series(name, one.step[until], one.epoch[until], one.time[until], one.value[until])]
            parts = [*([one.before] if one.before is not None else []), *parts]
            at, epoch, time, value = (
                np.concatenate([getattr(part, column) for part in parts])
                for column in ("step", "epoch", "time", "value")
            )
            line[name] = Series(name, at, epoch, time, value)
        return line

    def _of_steps(self) -> dict[str, Series]:
        steps, old = self._steps.steps, self._steps.superseded
        step, time = steps.column("step"), steps.column("time")
        epoch = self._epochs_done(step)
        made = {}
        for name in steps.names:
            there = logged(steps.column(name))
            if name not in NO_METRICS and there.any():
                columns = (step, epoch, time, steps.column(name))
                at, done, when, value = columns if there.all() else (column[there] for column in columns)
                made[name] = Series(name, at, done, when, value, _branches(name, old))
        return made

    def _epochs_done(self, step: Floats) -> Floats:
        """Epochs done at each step, a fraction inside an epoch: on a line through the ends of the epochs."""
        rows = self._history.epochs.values()
        per_epoch = self._starts[-1].steps_per_epoch if self._starts else 0
        ends = np.array([0.0, *(row.step for row in rows)])
        numbers = np.array([0.0, *(row.epoch for row in rows)])
        done: Floats = np.interp(step, ends, numbers)
        if (beyond := step > ends[-1]).any():  # the epoch that is running
            done[beyond] = numbers[-1] + (step[beyond] - ends[-1]) / per_epoch if per_epoch else np.nan
        return done

    # -- marks -----------------------------------------------------------------------------------------------------

    def marks(self) -> Sequence[Mark]:
        """Kept checkpoints and the newest, resumes, edits, and the best epoch: the more telling later."""
        history = self._history
        saved = history.checkpoints
        kept = [event for event in saved if not ALWAYS_REPLACED.issuperset(event.files) or event is saved[-1]]
        marks = [self._mark("checkpoint", event.step, event.time) for event in kept]
        marks += [self._mark("resume", event.resumed_step, event.time) for event in self._starts if event.resumed_step]
        marks += self._edit_marks()
        if history.best is not None:
            marks.append(self._mark("best", history.best.step, history.best.time))
        return marks

    def _edit_marks(self) -> list[Mark]:
        edits = list(self._edits.values())
        marks = [self._mark("edit", event.step, event.time) for event in edits]
        return [
            replace(mark, weights=edited_weights(edits[:place])) if isinstance(event.command, SetLossWeights) else mark
            for place, (mark, event) in enumerate(zip(marks, edits, strict=True), 1)
        ]

    def _mark(self, kind: MarkKind, step: int, time: float) -> Mark:
        return Mark(kind, step, float(self._epochs_done(np.array([float(step)]))[0]), time)


def family(run: RunDirectory, generations: int = 16) -> Mapping[str, Series]:
    """The metrics of the runs that led to a fork; empty of another run, and where its parent is gone.

    Raises `DataError` and OSError.
    """
    info = run.info if run.info_file.exists() else None
    if info is None or info.parent is None or info.fork_step is None or not generations:
        return {}
    parent = RunDirectory(run.path.parent / info.parent)
    if not parent.info_file.is_file():
        return {}
    metrics = RunMetrics(parent, "")
    metrics._family = family(parent, generations - 1)
    metrics.poll()
    return metrics.line_to(info.fork_step)


def _sources(row: Epoch) -> list[str]:
    """What an epoch says, the most telling first."""
    score = ["score"] if row.score is not None or "score" in row.nonfinite else []
    return [*score, *(f"train.{key}" for key in row.train), *(f"validation.{key}" for key in row.validation)]


def _of_epochs(source: str, rows: Sequence[Epoch], tails: Sequence[Sequence[Epoch]]) -> Series:
    told = _told(source, rows)
    old = ((_numbers([row.step for row in tail]), _values(source, tail)) for tail in (_told(source, t) for t in tails))
    return Series(
        name=source,
        step=_numbers([row.step for row in told]),
        epoch=_numbers([row.epoch for row in told]),
        time=_numbers([row.time for row in told]),
        value=_values(source, told),
        old=tuple((steps, values) for steps, values in old if len(steps)),
    )


def _told(source: str, rows: Sequence[Epoch]) -> list[Epoch]:
    """The epochs that measured it; what was measured and not finite is among them."""
    value_of = column_of(source)
    return [row for row in rows if value_of(row) is not None or source in row.nonfinite]


def _values(source: str, rows: Sequence[Epoch]) -> Floats:
    value_of = column_of(source)
    values = [np.nan if source in row.nonfinite else value_of(row) for row in rows]
    return np.array(values, dtype=np.float64)


def _numbers(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)


def _old_tails(history: History) -> list[list[Epoch]]:
    """What resumes superseded, one list an attempt."""
    old = sorted(history.superseded, key=lambda row: (row.attempt, row.step))
    return [list(rows) for _, rows in groupby(old, key=lambda row: row.attempt)]


def _branches(name: str, old: Sequence[Steps]) -> tuple[tuple[Floats, Floats], ...]:
    """Of one column, where a branch has it."""
    told = ((branch, logged(branch.column(name))) for branch in old if name in branch.names)
    return tuple((branch.column("step")[there], branch.column(name)[there]) for branch, there in told if there.any())
