"""Follows one run in a thread of its own and hands over what is new, so that a screen never waits for a disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cockpit.core.hosts.links import as_heard, link_of
from cockpit.core.log.logtail import LogTail
from cockpit.core.metrics.run_metrics import family
from cockpit.core.metrics.steps import StepFollower, Steps
from cockpit.core.run.attempts import AttemptFollower
from cockpit.core.series import Series
from engines.basics import yaml12
from engines.basics.errors import UserError
from engines.basics.jsonl import RecordFollower, damage_in
from engines.basics.lock import lock_holder
from engines.basics.reading import read_text
from engines.contract import commands as cmd
from engines.contract.events import Event
from engines.contract.rundir import Attempt, RunDirectory, RunInfo
from engines.runs.state import RunReader, Status


@dataclass(frozen=True)
class Log:
    """The tail of the engine's output."""

    lines: tuple[str, ...] = ()
    dropped: int = 0
    """Lines that fell off the start of `lines` since the log was opened."""


@dataclass(frozen=True, kw_only=True)
class News:
    """What changed in a run since the last news; None where nothing did."""

    restarted: bool = False
    """The event log was replaced: what came before it counts no more."""
    reading: bool | None = None
    """Whether a long history is not read to its end yet: what it tells so far is of long ago."""
    events: tuple[Event, ...] = ()
    commands: tuple[cmd.Command, ...] = ()
    info: RunInfo | None = None
    status: Status | None = None
    attempts: tuple[Attempt, ...] | None = None
    budget_usd: float | None = None
    steps: Steps | None = None
    before: Mapping[str, Series] | None = None
    """Of a fork: the metrics of its parents up to where it began, once."""
    log: Log | None = None
    damaged: tuple[str, ...] | None = None
    """In words: of each of its logs the lines that are not records."""
    problem: str | None = None
    """Why something could not be read now, an empty string when everything can again."""


NOTHING = News()
PIECE = 1 << 20
"""Bytes of events in one piece of news, some 4,000: a long history comes in pieces, so that the screen stays alive."""
BEHIND_SECONDS = 0.02
"""Between two pieces: time enough for a screen to take the first."""


class RunFollower:
    """Reads everything of one run, each byte once."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self._link = link_of(run.path)
        self._reader = RunReader(run, PIECE)
        self._opened = self._whole = False
        self.behind = True
        """Whether there is more to be read at once: a long history comes in pieces, and steps and log after it."""
        self._commands: RecordFollower[cmd.Command] = RecordFollower(run.commands, cmd.decoder)
        self._attempts = AttemptFollower(run)
        self._steps = StepFollower(run.steps)
        self._knows_family = False
        self._log = LogTail(run.stdout)
        self._budget = BudgetReader(run.config)
        self._given: dict[str, Any] = {"damaged": (), "problem": "", "budget_usd": None, "reading": False}

    @property
    def live(self) -> bool:
        """Whether the run was alive at the last look."""
        status = self._given.get("status")
        return isinstance(status, Status) and status.live

    @property
    def reading(self) -> bool:
        """Whether a long history is not read to its end yet."""
        return bool(self._given["reading"])

    def poll(self) -> News | None:
        """What is new, None when nothing is. Never raises for what the run's files hold."""
        if not self.run.path.is_dir():  # all that was read stays in view, and nothing else can be said of it
            self.behind = False
            gone = self._changed(status=Status("lost", "its directory is gone"), problem="", reading=False)
            return News(**gone) if gone else None
        changes: dict[str, Any] = {}
        problem = ""
        looks = [self._look_at_info, self._look_at_events, self._look_at_commands]
        self.behind = not self._opened or self._reader.behind  # epochs are there at once; a million steps take a moment
        self._opened = True
        for look in looks if self.behind else [*looks, self._look_at_output]:
            try:
                changes |= look()
            except (UserError, OSError) as error:
                problem = problem or str(error)
        changes |= self._changed(problem=problem, reading=not (self._whole or problem))
        news = News(**changes)
        return None if news == NOTHING else news

    def _changed(self, **values: Any) -> dict[str, Any]:
        """Those of `values` that differ from what was given last."""
        new = {key: value for key, value in values.items() if key not in self._given or self._given[key] != value}
        self._given |= new
        return new

    def _look_at_info(self) -> dict[str, Any]:
        return self._changed(info=self.run.info, budget_usd=self._budget.read())

    def _look_at_events(self) -> dict[str, Any]:
        """Facts are asked in the order in which they change, so that an end is never missed."""
        locked = lock_holder(self.run.lock) is not None
        attempts = self._attempts.poll()
        history = self._reader.history
        events = tuple(self._reader.poll())
        restarted = self._reader.history is not history
        self._whole = (self._whole and not restarted) or not self._reader.behind
        found = self._changed(attempts=attempts, damaged=self._damaged())
        if self._whole:
            status = self._reader.status_from(locked, attempts[-1] if attempts else None)
            found |= self._changed(status=as_heard(self._link, status))
        return found | {"events": events, "restarted": restarted}

    def _look_at_commands(self) -> dict[str, Any]:
        return {"commands": tuple(self._commands.poll())}

    def _look_at_output(self) -> dict[str, Any]:
        news: dict[str, Any] = {}
        if not self._knows_family:
            self._knows_family = True
            news["before"] = family(self.run) or None
        if self._steps.poll():
            news["steps"] = self._steps.steps
        if self._log.poll():
            news["log"] = Log(self._log.text.shown(), self._log.text.dropped)
        return news

    def _damaged(self) -> tuple[str, ...]:
        found = (self._reader.damage, damage_in(self.run.commands.name, self._commands.damage))
        return tuple(filter(None, found))


class BudgetReader:
    """The budget in a run's resolved config, read again when the file changes."""

    def __init__(self, config: Path) -> None:
        self._config = config
        self._read_at = 0
        self._budget: float | None = None

    def read(self) -> float | None:
        """US dollars; None without a budget or without a readable config."""
        try:
            changed = self._config.stat().st_mtime_ns
            if changed != self._read_at:
                self._read_at = changed
                tree, _ = yaml12.read(read_text(self._config))
                budget = yaml12.find(tree, "cost", "budget_usd")
                self._budget = float(budget) if isinstance(budget, int | float) else None
        except (OSError, ValueError):
            return None
        return self._budget
