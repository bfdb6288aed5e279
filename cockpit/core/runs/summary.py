"""One run as a line of the list: all of it while the run lives, a glance at its attempts once it has ended."""

from __future__ import annotations

import calendar
import contextlib
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cockpit.core.failures import sentence
from cockpit.core.hosts.links import as_heard, host_of, link_of, on_host
from cockpit.core.run.attempts import AttemptFollower
from cockpit.core.states import Shown, is_live
from cockpit.core.text import plain, run_word
from engines.basics.errors import UserError
from engines.basics.lock import lock_holder
from engines.contract.events import Alert, CommandAnswer, Epoch
from engines.contract.rundir import Attempt, RunDirectory, RunInfo
from engines.contract.spec import Column
from engines.host.queue import parse_standing
from engines.runs import spending
from engines.runs.state import RunReader

SCORES_KEPT = 32
SETTLED_NS = 2_000_000_000
"""The age from which a directory's time tells every later change, on network volumes too."""
COLUMNS_SHARED = 100
_COLUMNS: dict[tuple[Column, ...], tuple[Column, ...]] = {}
RUN_ID = re.compile(r"[^.].*-(\d{8}-\d{6})-[a-z]+")


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One line of the list of runs."""

    path: Path
    id: str
    host: str = ""
    """The machine that it is on; empty for this one."""
    created: float
    state: Shown
    detail: str = ""
    project: str = ""
    label: str = ""
    notes: str = ""
    tags: tuple[str, ...] = ()
    title: str = ""
    parent: str = ""
    """Id of the run it was forked from."""
    is_task: bool = False
    only_stops: bool = False
    """Nothing but a stop can be asked of it: of a task, and of a program that is not the cockpit's."""
    no_resume: str = ""
    """Why it can never be resumed, in a sentence; empty where that depends on its state."""
    attempt: int = 0
    last_step: int = 0
    """Where the newest attempt ended, once it has."""
    done: float = 0
    total: float = 0
    """Epochs; of a task whatever it counts."""
    score: float | None = None
    """The best; of a fork that has not beaten its parent, the parent's, as `inherited` says in words."""
    inherited: str = ""
    best: Epoch | None = None
    """The best epoch, with all that it measured."""
    columns: tuple[Column, ...] = ()
    """Of its table, as it announced them; runs with the same ones share them."""
    edits: tuple[CommandAnswer, ...] = ()
    """The live edits in force."""
    scores: tuple[float | None, ...] = ()
    """Of the epochs, thinned to what a sparkline needs."""
    spans: tuple[spending.Span, ...] = ()
    device: str = ""
    alert: Alert | None = None
    """The newest of what is wrong now."""
    queued: tuple[str, int] | None = None
    """Device and place, from 1, of a run that waits for its device and knows where it stands."""

    @property
    def word(self) -> str:
        """What it is called by: the last word of an id of ours, else the whole id; of another machine `gpu1:amber`."""
        return self.on_host(run_word(self.id) if RUN_ID.fullmatch(self.id) else plain(self.id))

    def on_host(self, words: str) -> str:
        """`words` after the name of its machine, where it is another one."""
        return on_host(self.host, words)

    @property
    def name(self) -> str:
        """`K=60 · amber`: its label, then its word."""
        return " · ".join(filter(None, (plain(self.label), self.word)))


class WatchedRun:
    """One run, looked at again and again; forgets its events once it has ended.

    `at_once` bounds the bytes that one look reads of a long history; until all is read its state is `reading`.
    """

    def __init__(self, path: Path, at_once: int | None = None) -> None:
        self.run = RunDirectory(path)
        self._link = link_of(self.run.path)
        self._at_once = at_once
        self.summary: RunSummary | None = None
        self._stamped = (str(path), str(self.run.attempts))
        self._reader: RunReader | None = None
        self._attempts = AttemptFollower(self.run)
        self._last_seen: dict[int, float] = {}
        self._stamp: object = None
        self._records: tuple[RunInfo, tuple[Attempt, ...]] | None = None
        """What was read at a stamp that has settled."""
        self._records_stamp: object = None

    def poll(self) -> bool:
        """Look again and say whether the summary changed."""
        if self._reader is None:
            if (stamp := self._look_at_stamp()) == self._stamp:
                return False  # ended, and nothing began again
            self._stamp = stamp
            self._reader = RunReader(self.run, self._at_once)
            self._last_seen.clear()
        try:
            new = self._summarise(self._reader)
        except (UserError, OSError) as error:
            new = broken(self.run.path, sentence(error))
        changed, self.summary = new != self.summary, new
        if not is_live(new.state) and (new.state == "broken" or not self._reader.behind):
            self._reader = None
        return changed

    @property
    def live(self) -> bool:
        return self._reader is not None

    @property
    def behind(self) -> bool:
        """Whether there is more to be read at once."""
        return self._reader is not None and self._reader.behind

    def _read_records(self) -> tuple[RunInfo, tuple[Attempt, ...]]:
        """run.json and the attempts, read again only when one was replaced."""
        stamp = self._look_at_stamp()
        if self._records is None or stamp != self._records_stamp:
            self._records = self.run.info, self._attempts.poll()
            # Times of directories are coarse: within a tick of the clock another replacement would not show.
            settled = time.time_ns() - max(stamp) > SETTLED_NS
            self._records_stamp = stamp if settled else None
        return self._records

    def _look_at_stamp(self) -> tuple[int, ...]:
        """Changes when an attempt begins, ends or is mended, or the run's record is written.

        All these files are replaced, never written in place, so the times of their two directories are enough: of a
        thousand ended runs each is asked every second. Of another machine it changes when the link drops, too.
        """
        return *map(_modified, self._stamped), self._link is None or not self._link.stale

    def _summarise(self, reader: RunReader) -> RunSummary:
        locked = lock_holder(self.run.lock) is not None
        info, attempts = self._read_records()
        for event in reader.poll():
            self._last_seen[event.attempt] = event.time
        if reader.behind:  # a part of its history would tell a state and numbers of long ago
            return self.summary or _unread(self.run.path, info, attempts)
        status = reader.status_from(locked, attempts[-1] if attempts else None)
        status = as_heard(self._link, status)
        history = reader.history
        scores = [row.score for row in history.epochs.values()]
        progress = history.progress
        to_beat = history.to_beat
        if info.kind == "task":
            done, total = (progress.done, progress.total) if progress else (0.0, 0.0)
        else:
            done, total = float(history.done), float(history.planned)
        return RunSummary(
            path=self.run.path, id=info.id, host=host_of(self.run.path), created=info.created,
            state=status.state, detail=status.detail or reader.damage,
            project=info.project, label=info.label, notes=info.notes, tags=tuple(info.tags),
            title=info.title, parent=info.parent or "",
            is_task=info.kind == "task", only_stops=info.only_stops, no_resume=info.why_no_resume,
            attempt=attempts[-1].number if attempts else 0,
            last_step=_last_step(attempts), done=done, total=total,
            score=to_beat.score if to_beat else None, inherited=history.inherited,
            best=history.best, scores=_thinned(scores),
            columns=_shared(history.started.columns) if history.started else (), edits=tuple(history.edits_in_force),
            spans=spending.spans_of(attempts, self._last_seen, live=status.live), device=_device(reader, attempts),
            alert=next(reversed(history.standing.values()), None) if status.live else None,
            queued=parse_standing(status.detail) if status.state == "queued" else None,
        )  # fmt: skip


def _unread(path: Path, info: RunInfo, attempts: tuple[Attempt, ...]) -> RunSummary:
    """A run of which only the records are read so far."""
    return RunSummary(
        path=path, id=info.id, host=host_of(path), created=info.created, state="reading", project=info.project,
        label=info.label, notes=info.notes, tags=tuple(info.tags), title=info.title, parent=info.parent or "",
        is_task=info.kind == "task", only_stops=info.only_stops, no_resume=info.why_no_resume,
        attempt=attempts[-1].number if attempts else 0,
        device=attempts[-1].device if attempts else "",
    )  # fmt: skip


def look(path: Path) -> RunSummary:
    """One run, once. Never raises for what its files hold."""
    watched = WatchedRun(path)
    watched.poll()
    assert watched.summary is not None
    return watched.summary


def broken(path: Path, why: str) -> RunSummary:
    """A run whose records cannot be read: shown as that, nothing more."""
    why = why.replace(f"{path}/", "")
    return RunSummary(path=path, id=path.name, host=host_of(path), created=_created(path), state="broken", detail=why)


def _created(path: Path) -> float:
    """When a run was made, by its name, else by its directory; 0 for one that is gone."""
    if stamp := RUN_ID.fullmatch(path.name):
        with contextlib.suppress(ValueError):  # digits that are no date
            return float(calendar.timegm(time.strptime(stamp.group(1), "%Y%m%d-%H%M%S")))
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _modified(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _shared(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns, of which a thousand runs of a project have one tuple."""
    own = tuple(columns)
    return _COLUMNS.setdefault(own, own) if len(_COLUMNS) < COLUMNS_SHARED else own


def _last_step(attempts: tuple[Attempt, ...]) -> int:
    return attempts[-1].ended.last_step if attempts and attempts[-1].ended else 0


def _device(reader: RunReader, attempts: tuple[Attempt, ...]) -> str:
    if (started := reader.history.started) is not None:
        return started.device
    return attempts[-1].device if attempts else ""


def _thinned(scores: list[float | None]) -> tuple[float | None, ...]:
    """At most `SCORES_KEPT` of them, the newest always among them."""
    step = -(-len(scores) // SCORES_KEPT)
    return tuple(scores[::-1][::step][::-1]) if scores else ()
