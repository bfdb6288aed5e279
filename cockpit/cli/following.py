"""Following a run on the terminal until it ends: its table on stdout, everything else it says on stderr."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Self

from cockpit.cli import codes
from cockpit.cli.printing import StatusLine, say, show, show_json_line
from cockpit.core.format import count, number, percent
from cockpit.core.metrics.weight_sets import WeightSets
from cockpit.core.run.alerts import typed
from cockpit.core.run.orders import Order
from cockpit.core.table.table import TableText
from engines.basics.errors import DataError
from engines.basics.jsonl import LineFollower, last_lines
from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.contract.events import Epoch
from engines.contract.rundir import End, RunDirectory
from engines.runs import launch
from engines.runs.history import History
from engines.runs.resumption import Resumption
from engines.runs.state import RunReader, Status

POLL_SECONDS = 0.1
GONE_SECONDS = 30.0
LOG_LINES = 20
TRACE_LINES = 200
"""How far back the beginning of a traceback is looked for."""
BEFORE = ("queued", "starting")


class FirstInterrupt:
    """Turns the first Ctrl-C into a mark, so that nothing half printed is lost; the next one interrupts as usual."""

    def __init__(self) -> None:
        self.pressed = False

    def __enter__(self) -> Self:
        self._before = signal.getsignal(signal.SIGINT)
        if self._before is not signal.SIG_IGN:  # as in the background of a script
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Watch:
    """Prints what a run says, each thing once: rows in force as they come, alerts, answers, a task's log.

    Of what was said before the watch began only the rows are printed.
    """

    def __init__(self, run: RunDirectory, *, table: bool = True, as_json: bool = False) -> None:
        self.run = run
        self.info = run.info
        self.id = self.info.id
        self._with_table, self._as_json = table, as_json
        self.reader = RunReader(run)
        self._log = LineFollower(run.stdout) if self.info.kind == "task" else None
        self._line = StatusLine()
        self.reader.poll()
        self._begin(self.reader.history)

    def _begin(self, history: History) -> None:
        """At first, and after the log was replaced."""
        self._history = history
        self._header = ""
        self._rows: dict[int, Epoch] = {}
        self._weights, self._mark = WeightSets(), ""
        self._alerts, self._answers = len(history.alerts), len(history.answers)
        self._resumes = len(history.resumes)

    def until_ended(self) -> Iterator[Status]:
        """The status, a few times a second, with everything new printed; the last one is not live."""
        try:
            while True:
                status = self.reader.status()
                self._print_news(status)
                yield status
                if not status.live:
                    return
                self._line.show(self._doing(status))
                time.sleep(POLL_SECONDS)
        finally:
            self._line.clear()

    def wait(self) -> int:
        """Follow the run to its end, tell it, and give the exit code."""
        for _ in self.until_ended():
            pass
        return self.tell_end()

    def tell_end(self) -> int:
        """Say how the run ended, with the log's last lines where only they explain it, and give the exit code."""
        attempt = self.run.newest_attempt()
        ended = attempt.ended if attempt else None
        status = self.reader.status()
        detail, code = status.detail, codes.of_state(status.state)
        if ended is not None and ended.reason == "failed":
            code = ended.exit_code or codes.FAILED
            detail = self._explain(ended, status.detail)
        best = self.reader.history.to_beat
        whose = " of its parent" if best and best.inherited else ""
        score = (
            f"; best score {number(best.score)} in epoch {best.epoch}{whose}" if best and best.score is not None else ""
        )
        why = f": {detail.rstrip('.')}" if detail else ""
        say(f"{self.id} {status.state}{why}{score}; see {self.run.path}")
        return code

    def _explain(self, ended: End, detail: str) -> str:
        """Show the log of a failed run where only it explains the failure, and give what remains to be said."""
        lines = last_lines(self.run.stdout, TRACE_LINES)
        crashed = ended.signal is not None or any(line.startswith("Traceback") for line in lines)
        if self._log is not None:  # shown already, and the engine's sentence is its last line
            return "" if ended.error else detail
        if not crashed and ended.error:
            return ended.error
        say(f"the last lines of {self.run.stdout}:")
        for line in lines[-LOG_LINES:]:
            say(f"  {line}")
        return detail

    def _print_news(self, status: Status) -> None:
        history = self.reader.history
        if history is not self._history:
            self._begin(history)
        started = history.started
        if started is not None and status.state not in BEFORE:  # a resume first says which rows are superseded
            if self._with_table:
                self._print_rows(history, TableText(started.columns, started.epochs))
            for step in history.resumes[self._resumes :]:
                self.tell(f"{self.id} resumed from step {step}")
            self._resumes = len(history.resumes)
        for alert in history.alerts[self._alerts :]:
            self.tell(alert.text if alert.level == "info" else f"{alert.level}: {typed(alert, self.info)}")
        for answer in history.answers[self._answers :]:
            if answer.state != "seen":
                self.tell(f"{cmd.describe(answer.command)}: {Order(answer.command, answer).outcome}")
        self._alerts, self._answers = len(history.alerts), len(history.answers)
        for line in self._log.poll() if self._log else ():
            self.tell(line.decode("utf-8", "replace"))

    def _print_rows(self, history: History, table: TableText) -> None:
        fresh = []
        for row in reversed(history.epochs.values()):
            if self._rows.get(row.epoch) == row:
                break
            fresh.append(row)
        if fresh and not self._as_json and self._header != table.header():
            self._header = table.header()
            self._show(self._header)
            self._show(table.rule())
        for row in reversed(fresh):
            self._rows[row.epoch] = row
            if self._as_json:
                show_json_line(row)
                continue
            self._weights.note([row])
            mark = self._weights.mark(row)
            if mark not in ("", self._mark):
                self.tell(f"losses computed with other loss weights are marked {self._weights.words(row)}")
            self._mark = mark
            self._show(table.row(row, mark))

    def _doing(self, status: Status) -> str:
        """One line on what the run does now."""
        history = self.reader.history
        progress = history.progress
        if self._log is not None and progress is not None:
            done = f"{count(progress.done)} of {count(progress.total)} {progress.unit}"
            share = f", {percent(progress.done / progress.total)}" if progress.total else ""
            return f"{status.state}: {done}{share}"
        if history.started is None or status.state in BEFORE:
            return " ".join((status.state, status.detail)).strip()
        detail = (history.phase.detail if history.phase else "") or status.detail or status.state
        epoch = min(history.done + 1, history.planned)
        return f"{status.state}: {detail}, epoch {epoch} of {history.planned}"

    def tell(self, text: str) -> None:
        """One line of news, on a line of its own."""
        self._line.clear()
        say(text)

    def _show(self, line: str) -> None:
        self._line.clear()
        show(line)


def start_and_attend(run: RunDirectory, resume: Resumption | None = None, sentences: Sequence[str] = ()) -> int:
    """Start a run, say the sentences and stay with it, deaf to no Ctrl-C in between; its exit code."""
    with FirstInterrupt() as interrupt:
        attempt = launch.start(run, resume)
        for sentence in sentences:
            say(sentence)
        return attend(run, attempt, interrupt)


def attend(run: RunDirectory, attempt: int, interrupt: FirstInterrupt) -> int:
    """Stay with a run that this command has just started, and give its exit code.

    Ctrl-C asks it to save and stop, and is waited for; a second one leaves it to itself.
    """
    run_id = run.info.id
    asked = False
    try:
        watch = Watch(run)
        watch.tell(f"{run_id} started; Ctrl-C stops it" + (", saved" if run.info.kind == "training" else ""))
        for status in watch.until_ended():
            if interrupt.pressed and not asked and status.live:
                asked = True
                launch.send_stop(run, cmd.Stop(attempt=attempt))
                watch.tell(f"stopping {run_id}; Ctrl-C again returns without waiting")
        code = watch.tell_end()
        wait_until_gone(run)
    except KeyboardInterrupt:
        what = "stops on its own" if asked else "keeps running"
        say(f"{run_id} {what}; watch it with `cockpit tail {run_id}`, stop it with `cockpit stop {run_id}`")
        return codes.INTERRUPTED
    return codes.INTERRUPTED if interrupt.pressed else code


def wait_until_gone(run: RunDirectory) -> None:
    """Until the supervisor has left too, so that the run can be resumed at once. Raises `DataError`."""
    deadline = time.monotonic() + GONE_SECONDS
    while (holder := lock_holder(run.lock)) is not None:
        if time.monotonic() > deadline:
            raise DataError(f"{run.info.id} has ended, but its supervisor (process {holder}) is still there.")
        time.sleep(POLL_SECONDS / 5)
