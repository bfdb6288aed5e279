"""Many files over several processes, in their order: none that fails, panics or kills its process ends the work.

    with each_file(read_game, paths, context.check) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome, Left):
                reasons[outcome.item] = outcome.reason
            else:
                store(outcome.value)

A process has one item at a time and comes to nothing else, so whose fault a death is needs no guess. Processes are
started clean (no fork of this one's threads) and import what the function's module imports: keep torch out of it.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from typing import Any, Generic, Literal, TypeVar

from engines.basics.errors import DataError, UserError
from engines.supervisor import processes

Item = TypeVar("Item")
Value = TypeVar("Value")
Kind = Literal["error", "panic", "death"]

AHEAD = 4
"""Items in flight or done but not their turn yet, for each process: what bounds the memory."""
TRIES = 2
"""Of an item whose process died: the kernel may have ended a neighbour of the one that took too much memory."""
CHECK_SECONDS = 0.1
LAST_SECONDS = 10.0
"""For a process to end after its connection has."""
LONGEST_REASON = 300


@dataclass(frozen=True)
class Taken(Generic[Item, Value]):
    """What the function gave for an item."""

    item: Item
    value: Value


@dataclass(frozen=True)
class Left(Generic[Item]):
    """An item that gave nothing, and why: one printable line. A panic is an exception that is no `Exception`."""

    item: Item
    reason: str
    kind: Kind


@contextmanager
def each_file(
    function: Callable[[Item], Value], items: Iterable[Item], check: Callable[[], None], *, workers: int | None = None
) -> Iterator[Iterator[Taken[Item, Value] | Left[Item]]]:
    """The outcome of `function` for each of `items`, in order, from up to `workers` processes (every usable core).

    function: of a module's top level. items: anything that pickles (a path, a member of a zip with its bytes), asked
    for only when a process is free; what the iterable itself raises passes. check: `context.check`, called at least
    every tenth of a second. On leaving, also by a stop, every process is gone. Raises `DataError` where a process dies
    before it has begun.
    """
    pool: _Pool[Item, Value] = _Pool(function, workers or len(os.sched_getaffinity(0)))
    try:
        yield pool.outcomes(iter(items), check)
    finally:
        pool.end()


@dataclass
class _Job(Generic[Item, Value]):
    item: Item
    tries: int = 0
    outcome: Taken[Item, Value] | Left[Item] | None = None

    def leave(self, reason: str, kind: Kind) -> None:
        self.outcome = Left(self.item, reason, kind)


class _Worker(Generic[Item, Value]):
    """A process, and the job that it has."""

    def __init__(self, function: Callable[[Item], Value]) -> None:
        clean = get_context("spawn")
        self.connection, theirs = clean.Pipe()
        self.process = clean.Process(target=_work, args=(theirs, function, os.getpid()), daemon=True)
        self.process.start()
        theirs.close()
        self.job: _Job[Item, Value] | None = None
        self.ready = False
        """It has imported what its function needs and said so; only then can it take a large item off the pipe."""
        self._content = b""

    def give(self, job: _Job[Item, Value], content: bytes) -> None:
        self.job, self._content = job, content
        if self.ready:
            self.send()

    def send(self) -> None:
        with suppress(OSError):  # it has died: its end is seen where answers are collected
            self.connection.send_bytes(self._content)
        self._content = b""

    def end(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.join()
        self.process.close()
        self.connection.close()

    def cause(self) -> str:
        """How a process ended that has closed its connection, and so is at its end."""
        self.process.join(LAST_SECONDS)
        code = self.process.exitcode or 0
        with suppress(ValueError):
            return f"its process died by {signal.Signals(-code).name}"
        return f"its process ended with exit code {code}"


class _Pool(Generic[Item, Value]):
    def __init__(self, function: Callable[[Item], Value], most: int) -> None:
        self._function, self._most = function, most
        self._workers: list[_Worker[Item, Value]] = []
        self._waiting: deque[_Job[Item, Value]] = deque()
        """Jobs whose outcome has not been given yet, in order."""
        self._again: deque[_Job[Item, Value]] = deque()
        """Those of them whose process died."""

    def outcomes(self, items: Iterator[Item], check: Callable[[], None]) -> Iterator[Taken[Item, Value] | Left[Item]]:
        while True:
            check()
            self._hand_out(items)
            if not self._waiting:
                return
            ready = self._waiting[0].outcome is not None
            self._collect(0 if ready else CHECK_SECONDS)
            if ready:
                self._hand_out(items)  # so that processes work while the outcome is being used
                outcome = self._waiting.popleft().outcome
                assert outcome is not None
                yield outcome

    def end(self) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def _hand_out(self, items: Iterator[Item]) -> None:
        """Give every free process a job; start a process where there is a job and none is free."""
        free = [worker for worker in self._workers if worker.job is None]
        while (free or len(self._workers) < self._most) and (job := self._next(items)) is not None:
            try:
                content = pickle.dumps(job.item, pickle.HIGHEST_PROTOCOL)
            except Exception as error:  # an item of any class may fail in any way
                job.leave(_reason(error), "error")
                continue
            if not free:
                free.append(_Worker(self._function))
                self._workers.append(free[-1])
            free.pop().give(job, content)

    def _next(self, items: Iterator[Item]) -> _Job[Item, Value] | None:
        if self._again:
            return self._again.popleft()
        if len(self._waiting) >= AHEAD * self._most:
            return None
        for item in items:
            self._waiting.append(_Job(item))
            return self._waiting[-1]
        return None

    def _collect(self, seconds: float) -> None:
        """Take the answers that are there; wait for the first one up to `seconds`."""
        busy = {worker.connection: worker for worker in self._workers if worker.job is not None}
        for one in connection.wait(busy, seconds):
            assert isinstance(one, Connection)
            worker = busy[one]
            job = worker.job
            assert job is not None
            try:
                content = one.recv_bytes()
            except (EOFError, OSError):
                self._workers.remove(worker)
                cause = worker.cause()
                worker.end()
                self._died(job, cause, worker.ready)
                continue
            if worker.ready:
                worker.job = None
                self._take(job, content)
            else:
                worker.ready = True
                worker.send()

    def _take(self, job: _Job[Item, Value], content: bytes) -> None:
        try:
            kind, answer = pickle.loads(content)
        except Exception as error:  # a value of any class may fail in any way
            kind, answer = "error", _reason(error)
        if kind is None:
            job.outcome = Taken(job.item, answer)
        else:
            job.leave(answer, kind)

    def _died(self, job: _Job[Item, Value], how: str, ready: bool) -> None:
        if not ready:
            raise DataError(f"No worker process could be started: {how}; the lines above say why.")
        job.tries += 1
        if job.tries < TRIES:
            self._again.append(job)
        else:
            job.leave(how, "death")


def _work(asker: Connection, function: Callable[[Any], Any], parent: int) -> None:
    """A process: answers one item after the other, as (None, value) or (kind, reason), until its parent is gone."""
    processes.die_with_parent(parent)()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group: the parent ends us
    with suppress(EOFError, OSError):
        asker.send_bytes(b"ready")
        while True:
            answer = _answer(function, asker.recv_bytes())
            sys.stdout.flush()
            asker.send_bytes(answer)


def _answer(function: Callable[[Any], Any], content: bytes) -> bytes:
    try:
        return pickle.dumps((None, function(pickle.loads(content))), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return pickle.dumps(("error", _reason(error)))
    except BaseException as error:  # what a panic in a Rust extension comes as, and a library's own exit
        return pickle.dumps(("panic", _reason(error)))


def _reason(error: BaseException) -> str:
    """One printable line: the sentence of a `UserError`, of any other error its class too."""
    try:
        text = str(error)
    except Exception:  # the error of a damaged extension
        text = ""
    named = text if isinstance(error, UserError) else f"{type(error).__name__}: {text}"
    line = "".join(sign if sign.isprintable() else "�" for sign in " ".join(named.split()))
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"
