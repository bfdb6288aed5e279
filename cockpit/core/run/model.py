"""What a screen knows of one run: built from news, read by widgets, in one thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cockpit.core.metrics.steps import NO_STEPS, Steps
from cockpit.core.run import progress
from cockpit.core.run.advice import Advice, advise
from cockpit.core.run.follow import Log, News
from cockpit.core.run.orders import Order
from cockpit.core.series import Series
from engines.contract.events import Alert, Checkpoint, CommandAnswer, Epoch, Header, Phase, RunStarted
from engines.contract.rundir import Attempt, RunInfo
from engines.runs import spending
from engines.runs.history import History
from engines.runs.state import Status


@dataclass(frozen=True)
class StageBegan:
    """A new stage, known by its first epoch; `time` is when the epoch before it ended."""

    name: str
    epoch: int
    time: float


Notable = Order | Alert | RunStarted | StageBegan | Checkpoint | Epoch | Phase | Attempt
"""What the events pane lists: of epochs those that were the best, of attempts those that have ended."""


def time_of(notable: Notable) -> float:
    """When it happened, in Unix seconds."""
    match notable:
        case Order():
            return notable.command.time
        case Attempt():
            return notable.ended.time if notable.ended else notable.started
        case _:
            return notable.time


def _key(event: Header) -> str:
    """Engine and supervisor count their events apart; the time tells those of one number."""
    return f"{event.attempt}.{event.seq}.{event.time}"


class RunModel:
    """One run as it stands; `add` takes the follower's news."""

    def __init__(self, host: str = "") -> None:
        self.host = host
        """The machine that it is on; empty for this one."""
        self.info: RunInfo | None = None
        self.history = History()
        self.reading = False
        """Whether it is not read to its end yet: nothing of it is worth telling before."""
        self.status = Status("starting")
        self.attempts: tuple[Attempt, ...] = ()
        self.budget_usd: float | None = None
        self.steps: Steps = NO_STEPS
        self.before: Mapping[str, Series] = {}
        """Of a fork: the metrics of its parents up to where it began."""
        self.log = Log()
        self.damaged: tuple[str, ...] = ()
        self.problem = ""
        self.baseline: tuple[float | None, str] = (None, "")
        """Best score and name of the run that it is compared with; without a score why there is none, in words."""
        self._last_seen: dict[int, float] = {}
        self._notable: dict[str, Notable] = {}
        self._in_order: list[Notable] | None = []
        self._last_epoch: Epoch | None = None
        self._advice: tuple[Epoch | None, Advice | None] = (None, None)

    def add(self, news: News) -> None:
        if news.restarted:
            self.history = History()
            self._last_seen.clear()
            self._last_epoch = self._in_order = None
            self._notable = {key: order for key, order in self._notable.items() if isinstance(order, Order)}
        for event in news.events:
            self.history.add(event)
            self._last_seen[event.attempt] = event.time
            self._note(event)
        for command in news.commands:
            order = Order(command, self.history.answer(command.id, command.attempt))
            self._notable.setdefault(command.id, order)
        for attempt in news.attempts or ():
            if attempt.ended is not None:
                self._notable[f"end {attempt.number}"] = attempt
        if news.events or news.commands or news.attempts:
            self._in_order = None
        for name in (
            "info",
            "reading",
            "status",
            "attempts",
            "budget_usd",
            "steps",
            "before",
            "log",
            "damaged",
            "problem",
        ):
            if (value := getattr(news, name)) is not None:
                setattr(self, name, value)

    def _note(self, event: object) -> None:
        match event:
            case CommandAnswer():
                # A resume applies earlier edits again; the list keeps the first answer of the attempt meant.
                known = self._notable.get(event.command.id)
                if not (isinstance(known, Order) and known.answer and known.answer.attempt < event.attempt):
                    self._notable[event.command.id] = Order(event.command, event)
            case Epoch():
                self._note_epoch(event)
            case Alert() | RunStarted() | Checkpoint() | Phase():
                self._notable[_key(event)] = event

    def _note_epoch(self, event: Epoch) -> None:
        before, self._last_epoch = self._last_epoch, event
        if before is not None and before.stage != event.stage and before.epoch < event.epoch:
            self._notable[f"stage {event.epoch}"] = StageBegan(event.stage, event.epoch, before.time)
        if event.best:
            self._notable[_key(event)] = event

    @property
    def notable(self) -> list[Notable]:
        """Everything that happened beside the epochs, oldest first."""
        if self._in_order is None:
            self._in_order = sorted(self._notable.values(), key=time_of)
        return self._in_order

    def order(self, command_id: str) -> Order | None:
        """A command by its id, once it is in the log."""
        order = self._notable.get(command_id)
        return order if isinstance(order, Order) else None

    @property
    def is_task(self) -> bool:
        return self.info is not None and self.info.kind == "task"

    @property
    def live(self) -> bool:
        return self.status.live

    @property
    def attempt(self) -> Attempt | None:
        """The newest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def step(self) -> int:
        """Steps done, by the newest word on it."""
        newest = self.history.newest
        phase = self.history.phase
        return max(self.steps.newest, newest.step if newest else 0, phase.step if phase else 0)

    @property
    def fraction(self) -> float:
        return 1.0 if self.status.state == "finished" else progress.fraction_done(self.history, self.step)

    @property
    def spans(self) -> tuple[spending.Span, ...]:
        return spending.spans_of(self.attempts, self._last_seen, live=self.live)

    @property
    def alerts(self) -> list[Alert]:
        """What is wrong now, the newest first."""
        return list(self.history.standing.values())[::-1] if self.live else []

    @property
    def advice(self) -> Advice | None:
        """What more epochs would bring: worked out again, in 5 ms, when one has ended."""
        newest = self.history.newest
        if newest is not self._advice[0]:
            self._advice = newest, advise(self.history, self.attempt.usd_per_hour if self.attempt else 0.0)
        return self._advice[1]

    @property
    def speed(self) -> float | None:
        """Steps per second; None while nothing steps, as in an evaluation or while the report is made."""
        phase = self.history.phase
        steps = self.status.state == "running" and phase is not None and phase.phase in ("training", "compiling")
        return self.steps.rate(self.history.stepping) if steps else None

    def seconds_left(self, now: float) -> float | None:
        """Estimate of the time to the end, None unless it is running."""
        if self.status.state != "running" or self.attempt is None:
            return None
        return progress.seconds_left(self.history, self.step, now, self.attempt.started)
