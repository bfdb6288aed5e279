"""One training, hurt and brought to its end: start, fault, look, resume, compare."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import psutil
from msgspec.structs import replace

from engines.basics.errors import DataError, UserError
from engines.basics.lock import lock_holder
from engines.contract.commands import new_id
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.resumption import Resumption
from engines.runs.saved import epoch_of
from engines.runs.state import LIVE, RunReader
from tests.faults import forked, injected
from tests.faults.injected import Injection, Point
from tests.faults.trainings import Training
from tests.faults.verdicts import Promises, Verdict

PATIENCE = 120.0
"""Seconds after which what does not end counts as hung."""


class Hung(Exception):
    """Something that should have happened did not."""


def wait_for(what: str, condition: Callable[[], object], patience: float = PATIENCE) -> None:
    """Poll until it holds. Raises `Hung`."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise Hung(f"waited {patience:.0f} s in vain for {what}")
        time.sleep(0.01)


def process_state(pid: int) -> str:
    """`R`, `S`, `T` … of a process; empty where there is none, or only its exit status is left."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
    return "" if state in "ZX" else state


class Patient:
    """A run that a fault happens to, in a folder of its own."""

    def __init__(self, training: Training, data: Path, folder: Path, reference: RunDirectory) -> None:
        self.training, self.data, self.folder, self.reference = training, data, folder, reference
        self.verdict = Verdict()
        self.forks = True
        """Whether its processes are forks of this one, with torch imported."""
        self.reports = True
        """Whether it goes on to the report and the export, which take longer than such a training."""
        self.held = 0.0
        """Seconds for which a stopped process is left alone."""
        self.struck = False
        """Whether something happened to it that is no injected call."""
        self._promised: list[Promises] = []
        self.runs = folder / "runs"
        os.environ["COCKPIT_RUNS"] = str(self.runs)
        self.run = RunDirectory(self.runs / "run")

    def prepare(self, *settings: str) -> None:
        self.run = self.training.prepare(self.data, self.runs / "run", *settings)
        if not self.reports:
            self.training.end_before_report(self.run, 1)

    @property
    def filler(self) -> Path:
        """What takes all the room of a small disk."""
        return self.runs / "filler"

    # -- attempts ----------------------------------------------------------------------------------------------------

    @contextmanager
    def armed(self, injections: Sequence[Injection]) -> Iterator[None]:
        """What is started inside the `with` has these faults waiting for it."""
        injected.armed[:] = injections
        injected.trace = self.folder / "trace"
        injected.trace.mkdir(exist_ok=True, mode=0o777)
        try:
            with forked.forks() if self.forks else nullcontext():
                yield
        finally:
            injected.armed.clear()
            injected.trace = None

    def start(self, injections: Sequence[Injection] = (), resume: Resumption | None = None) -> bool:
        """Start an attempt; False where the supervisor came to nothing."""
        with self.armed(injections):
            try:
                launch.start(self.run, resume)
            except UserError:
                return False
        return True

    def resume(self, injections: Sequence[Injection] = ()) -> bool:
        self._send_again()
        if not self.reports:
            self.training.end_before_report(self.run, max(self.run.attempt_numbers(), default=0) + 1)
        plan, _ = launch.prepare_resume(self.run)
        return self.start(injections, plan)

    def _send_again(self) -> None:
        """As a user does with an edit that was refused because the run ended first."""
        reader = RunReader(self.run)
        reader.poll()
        number = max(self.run.attempt_numbers(), default=0)
        for answer in reader.history.answers:
            edit = answer.command
            if answer.state == "refused" and edit.attempt == number and edit.at_step is not None:
                launch.send(self.run, replace(edit, attempt=number + 1, id=new_id()))

    def attempt(
        self, injections: Sequence[Injection], expected: tuple[str, ...], words: str = "", *, resume: bool
    ) -> str:
        """One attempt with its faults, and a look at what it left; the state."""
        began = self.resume(injections) if resume else self.start(injections)
        self.wait_end()
        return self.look(expected if began else (*expected, "lost"), words)

    def look(self, expected: tuple[str, ...], words: str = "") -> str:
        """Whether what it says it has saved is there and what was there is there yet, and its state is true."""
        self._promised.append(self.verdict.kept(self.run))
        for one in self._promised:
            self.verdict.still(one)
        return self.verdict.truth(self.run, expected, words)

    def to_the_end(self) -> None:
        """Resume until it has finished, then compare."""
        for _ in range(4):
            if self.is_done:
                break
            self.attempt((), self.ended, resume=True)
        self.look(self.ended)
        self.verdict.equal(self.run, self.reference, delivered=self.reports)

    @property
    def ended(self) -> tuple[str, ...]:
        """The state that it comes to when nothing more happens to it."""
        return ("finished",) if self.reports else ("stopped", "finished")  # resumed after its last epoch it finishes

    @property
    def is_done(self) -> bool:
        """Whether it has come to the end of its training."""
        return self.state in self.ended and epoch_of(self.run.last) == self.training.epochs

    def find_hit(self) -> Point | None:
        """The call that was hit, of any attempt."""
        traces = sorted((self.folder / "trace").glob("*.*"))
        return next((point for point in map(injected.hit, traces) if point is not None), None)

    # -- its processes -----------------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        return RunReader(self.run).status().state

    @property
    def waits(self) -> bool:
        """Whether the engine says that it waits; the state says that it stops, where it was asked to."""
        reader = RunReader(self.run)
        reader.poll()
        return reader.history.phase is not None and reader.history.phase.phase == "paused"

    def pids(self) -> list[int]:
        """Its supervisors and engines that do anything yet, the supervisor first."""
        marks = []
        for number in self.run.attempt_numbers():
            with suppress(DataError):
                attempt = self.run.attempt(number)
                marks += [attempt.supervisor, *([attempt.engine] if attempt.engine else [])]
        found = []
        for mark in marks:
            with suppress(psutil.NoSuchProcess):
                if process_state(mark.pid) and abs(psutil.Process(mark.pid).create_time() - mark.started) < 1:
                    found.append(mark.pid)
        return found

    def is_over(self) -> bool:
        """Whether none of its processes is left; what has ended is reaped, what is stopped is continued."""
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        pids = self.pids()
        for pid in pids:
            if process_state(pid) == "T":
                self.verdict.expect(self.state in LIVE, f"state {self.state} while process {pid} is stopped")
                time.sleep(self.held)
                os.kill(pid, signal.SIGCONT)
        return not pids and lock_holder(self.run.lock) is None

    def wait_end(self) -> None:
        """Until no process of the run is left. Raises `Hung` after killing it."""
        try:
            wait_for("the run's end", self.is_over)
        except Hung:
            for pid in self.pids():
                os.kill(pid, signal.SIGKILL)
            raise
