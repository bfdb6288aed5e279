"""What happened in a run, gathered from its events: the epoch table, edits, alerts and where it is now.

Attempts: a resume from step S supersedes everything that earlier attempts logged beyond S. `epochs` holds one row an
epoch, the one in force; `superseded` keeps the old tails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from engines.contract.alerts import CHECKPOINT_FAILED, LASTING
from engines.contract.commands import Edit, Kind, SetEpochs, SetLossWeights, SetLrScale, SetPatience
from engines.contract.events import (
    Alert,
    Checkpoint,
    CommandAnswer,
    Ended,
    Epoch,
    Event,
    GradientNorms,
    Phase,
    Progress,
    RunStarted,
)


@dataclass(frozen=True)
class Best:
    """What there is to beat. inherited: it is of the run that this one was forked from."""

    score: float | None
    epoch: int
    inherited: bool

    def __str__(self) -> str:
        """`0.929 (parent, ep 20)`; of the run's own `0.929 (ep 20)`."""
        score = "—" if self.score is None else f"{self.score:.4g}"
        return f"{score} ({'parent, ' if self.inherited else ''}ep {self.epoch})"


@dataclass
class History:
    """The effective view of a run's events. Feed it with `add`, in the order of the log."""

    started: RunStarted | None = None
    """Of the newest attempt."""
    first_started: float | None = None
    epochs: dict[int, Epoch] = field(default_factory=dict)
    """By epoch number, in order."""
    superseded: list[Epoch] = field(default_factory=list)
    phase: Phase | None = None
    progress: Progress | None = None
    ended: Ended | None = None
    answers: list[CommandAnswer] = field(default_factory=list)
    effective: list[CommandAnswer] = field(default_factory=list)
    """What was applied and holds: a resume undoes what was applied beyond its checkpoint, until it is applied again."""
    gradients: GradientNorms | None = None
    """As last measured."""
    alerts: list[Alert] = field(default_factory=list)
    standing: dict[str, Alert] = field(default_factory=dict)
    """By code, in order: what the newest attempt was alerted of and is not over."""
    checkpoints: list[Checkpoint] = field(default_factory=list)
    resumes: list[int] = field(default_factory=list)
    """Steps from which attempts were resumed."""
    gaps: list[tuple[float, float]] = field(default_factory=list)
    """When nothing could step, in Unix seconds: pauses, and the time from one attempt to the next."""
    attempt: int = 0
    last_event: float = 0.0

    def extend(self, events: Iterable[Event]) -> None:
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        if event.attempt > self.attempt:
            self.attempt = event.attempt
            self.standing.clear()
        before, self.last_event = self.last_event, event.time
        match event:
            case RunStarted():
                if self.started is not None:
                    self.gaps.append((before, event.time))
                self._start(event)
            case Epoch():
                if (old := self.epochs.pop(event.epoch, None)) is not None:
                    self.superseded.append(old)
                self.epochs[event.epoch] = event
            case Phase():
                if self.phase is not None and self.phase.phase == "paused":
                    self.gaps.append((self.phase.time, event.time))
                self.phase, self.progress = event, None
            case Progress():
                self.progress = event
            case Ended():
                self.ended = event
            case CommandAnswer():
                self.answers.append(event)
                if event.state == "applied":
                    self.effective.append(event)
            case GradientNorms():
                self.gradients = event
            case Alert():
                self._note(event)
            case Checkpoint():
                self.standing.pop(CHECKPOINT_FAILED, None)
                self.checkpoints.append(event)

    def _note(self, alert: Alert) -> None:
        self.alerts.append(alert)
        if alert.code in LASTING:
            self.standing.pop(alert.code, None)
            if not alert.over:
                self.standing[alert.code] = alert

    def _start(self, event: RunStarted) -> None:
        if self.started is not None:
            self.resumes.append(event.resumed_step)
        self.first_started = self.first_started or event.time
        self.started = event
        self.ended = self.phase = self.progress = None
        for row in [row for row in self.epochs.values() if event.undoes(row)]:
            self.superseded.append(self.epochs.pop(row.epoch))
        self.effective = [answer for answer in self.effective if not event.undoes(answer)]

    def stepping(self, since: float, until: float) -> float:
        """Seconds between two moments without the gaps between them, and without the pause that lasts."""
        gaps = self.gaps
        if self.phase is not None and self.phase.phase == "paused":
            gaps = [*gaps, (self.phase.time, until)]
        idle = sum(max(0.0, min(end, until) - max(begin, since)) for begin, end in gaps)
        return max(0.0, until - since - idle)

    @property
    def best(self) -> Epoch | None:
        """The newest epoch that was marked best."""
        return next((row for row in reversed(self.epochs.values()) if row.best), None)

    @property
    def to_beat(self) -> Best | None:
        """The best score of this run; of a fork that has none, its parent's."""
        if (row := self.best) is not None:
            return Best(row.score, row.epoch, inherited=False)
        started = self.started
        if started is None or started.best_score is None or not started.best_epoch:
            return None
        return Best(started.best_score, started.best_epoch, inherited=True)

    @property
    def inherited(self) -> str:
        """`best 0.929 (parent, ep 20) · patience 2/10`, of a fork that has not beaten its parent; else empty."""
        best = self.to_beat
        if best is None or not best.inherited:
            return ""
        waited = f" · patience {max(0, self.done - best.epoch)}/{self.patience}" if self.patience else ""
        return f"best {best}{waited}"

    @property
    def newest(self) -> Epoch | None:
        return next(reversed(self.epochs.values()), None)

    @property
    def of_stage(self) -> list[Epoch]:
        """The epochs in force of the stage that the newest belongs to."""
        newest = self.newest
        return [row for row in self.epochs.values() if newest is not None and row.stage == newest.stage]

    @property
    def done(self) -> int:
        """Epochs done, those that a fork's parent did for it among them."""
        if (newest := self.newest) is not None:
            return newest.epoch
        started = self.started
        if started is not None and started.resumed_epoch is not None:
            return started.resumed_epoch
        return started.resumed_step // started.steps_per_epoch if started and started.steps_per_epoch else 0

    def applied(self) -> Iterator[CommandAnswer]:
        """What was applied since the plan was last reported, the newest first: none by a resume that still loads."""
        since = self.started.attempt if self.started else 0
        return (answer for answer in reversed(self.effective) if answer.attempt >= since)

    @property
    def edits_in_force(self) -> list[CommandAnswer]:
        """The edits that hold, in the order in which they were made; one applied again by a resume stands twice."""
        return [answer for answer in self.effective if isinstance(answer.command, get_args(Edit))]

    def _newest_applied(self, kind: type[Kind]) -> Kind | None:
        return next((one.command for one in reversed(self.effective) if isinstance(one.command, kind)), None)

    def loss_weights(self, configured: Mapping[str, float]) -> dict[str, float]:
        """The weights in force, of a run that began with the `configured` ones."""
        weights = dict(configured)
        for answer in self.effective:
            if isinstance(answer.command, SetLossWeights):
                weights |= answer.command.weights
        return weights

    @property
    def lr_scale(self) -> float:
        """What the configured schedule is multiplied by."""
        edit = self._newest_applied(SetLrScale)
        return edit.scale if edit is not None else 1.0

    @property
    def planned(self) -> int:
        """Epochs the run will have, live edits included; 0 while nothing is known."""
        if (edit := self._newest_applied(SetEpochs)) is not None:
            return edit.epochs
        return self.started.epochs if self.started else 0

    @property
    def patience(self) -> int:
        """Epochs without a better score that end the run or its stage, live edits included; 0 where it is not known."""
        if (edit := self._newest_applied(SetPatience)) is not None:
            return edit.patience
        if self.started is None:
            return 0
        of_stage = {stage.name: stage.patience for stage in self.started.stages}
        return of_stage.get(self.newest.stage if self.newest else "", 0) or self.started.patience

    def answer(self, command_id: str, attempt: int) -> CommandAnswer | None:
        """The newest answer to a command in an attempt."""
        matching = (a for a in reversed(self.answers) if a.command.id == command_id and a.attempt == attempt)
        return next(matching, None)

    def edits(self) -> list[CommandAnswer]:
        """Every edit ever applied, once each, in the order it was first applied."""
        found: dict[str, CommandAnswer] = {}
        for answer in self.answers:
            if answer.state == "applied" and isinstance(answer.command, get_args(Edit)):
                found.setdefault(answer.command.id, answer)
        return list(found.values())


def column_of(source: str) -> Callable[[Epoch], Any]:
    """Gives what a table column with this `source` shows of an epoch (None: nothing), for many epochs."""
    group, _, key = source.partition(".")
    match group:
        case "train":
            return lambda row: row.train.get(key)
        case "validation":
            return lambda row: row.validation.get(key)
        case _:
            return lambda row: getattr(row, source, None)


def column_value(source: str, row: Epoch) -> Any:
    """What a table column with this `source` shows of an epoch (None: nothing)."""
    return column_of(source)(row)
