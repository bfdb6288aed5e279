"""A fault at the n-th call by which a process changes its run directory: nothing of it is in the product.

Counted are `open` for writing, each `write` (of a log, a checkpoint, a record), `fsync`, `rename`, `link`, `unlink`,
`truncate` and `mkdir`, of paths inside the run directory, in any thread.
"""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engines.runtime.following import MARK

TEN_MEGABYTES = 10 << 20


@dataclass(frozen=True)
class Injection:
    """What happens at which call."""

    what: str
    """`kill`, `torn` (killed with half of a write done), `refuse`, `signal`, `print`, `clock`, `fill`, `forbid`."""
    who: str = "engine"
    """Whose calls are counted: `engine` (of several ranks the first) or `supervisor`."""
    call: int = 0
    at: tuple[str, str, bytes] | None = None
    """Counted are only the calls of this name and path, and of writes those of something with these bytes in it."""
    attempt: int = 1
    victims: str = "self"
    """Who is hit: `self`, `parent`, `both`, the `group`, or `rank 1`."""
    signal: int = signal.SIGKILL
    error: int = errno.ENOSPC
    times: int = 1
    """So many calls in a row are refused; -1: all from this one on."""
    seconds: float = 0.0
    """The clock jumps by so much."""
    path: str = ""
    """In the run directory: the folder in which nothing may be made any more."""

    def counts(self, name: str, path: str, data: Any) -> bool:
        """Whether this call is one of those that are counted."""
        if self.at is None:
            return True
        return (name, path) == self.at[:2] and (not self.at[2] or self.at[2] in bytes(data))


@dataclass(frozen=True)
class Point:
    """One call of a run that nothing happened to."""

    number: int
    name: str
    path: str
    epochs: int = 0
    """Epochs that were recorded before it."""

    def __str__(self) -> str:
        return f"call {self.number}, {self.name} {self.path}"


_NAMES = ("open", "write", "fsync", "replace", "rename", "link", "unlink", "ftruncate", "mkdir", "fdopen")
_REAL = {name: getattr(os, name) for name in _NAMES}
_REAL_TIME = time.time

_TEMPORARY = re.compile(r"\.[0-9a-f]{8}\.tmp$")

armed: list[Injection] = []
"""For the next processes that are forked."""
trace: Path | None = None
"""Where the calls of a process are written down, and which of them was hit."""
RANK_1 = "rank-1"
"""Beside them: the process id of the second rank, which changes nothing in the run directory."""


class Calls:
    """Counts the calls of this process and injects what is due."""

    def __init__(self, root: Path, injection: Injection | None, log: Path | None) -> None:
        self._root, self._injection = str(root), injection
        self._log = None if log is None else _REAL["open"](log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._count, self._counted, self._epochs = -1, -1, 0
        self._lock = threading.RLock()

    def inside(self, path: Any) -> str | None:
        """The path inside the run directory, None for one that lies elsewhere."""
        if isinstance(path, int):
            try:
                path = os.readlink(f"/proc/self/fd/{path}")
            except OSError:
                return None
        text = os.path.abspath(os.fspath(path))
        text = text.decode() if isinstance(text, bytes) else text
        return text[len(self._root) + 1 :] if text.startswith(self._root + "/") else None

    def saw(self, data: Any) -> None:
        """Count the epochs in what is written to a log of events."""
        if len(data) < 1 << 16 and b'"type":"epoch"' in bytes(data):
            self._epochs += 1

    def call(
        self, name: str, path: Any, do: Callable[[], Any], half: Callable[[], Any] | None = None, data: Any = b""
    ) -> Any:
        """Do it, unless something is to happen instead or before; `half` does a part of it."""
        where = self.inside(path)
        if where is None or where.startswith("logs/"):
            return do()
        where = _TEMPORARY.sub(".tmp", where)
        with self._lock:
            self._count += 1
            one = self._injection
            if one is None or not one.counts(name, where, data):
                self._note("call", name, where)
                return do()
            self._counted += 1
            past = self._counted - one.call
            if past < 0 or (past > 0 and one.what != "refuse") or (one.what == "refuse" and 0 <= one.times <= past):
                self._note("call", name, where)
                return do()
            self._note("hit", name, where)
            self._inject(one, do, half)
            return do()

    def _note(self, what: str, name: str, where: str) -> None:
        if self._log is not None:
            line = [what, str(self._count), name, where, str(self._epochs)]
            _REAL["write"](self._log, ("\t".join(line) + "\n").encode())

    def _inject(self, one: Injection, do: Callable[[], Any], half: Callable[[], Any] | None) -> None:
        match one.what:
            case "torn":
                (half or do)()
                self._strike(one)
            case "kill" | "signal":
                self._strike(one)
            case "refuse":
                raise OSError(one.error, os.strerror(one.error))
            case "print":
                for _ in range(TEN_MEGABYTES // 100):
                    sys.stdout.write("x" * 99 + "\n")
                self._strike(one)
            case "fill":
                _fill(Path(self._root).parent / "filler")
            case "forbid":
                os.chmod(Path(self._root) / one.path, 0o500)
            case "clock":
                jump = one.seconds
                time.time = lambda: _REAL_TIME() + jump
            case other:
                raise ValueError(other)

    def _strike(self, one: Injection) -> None:
        if one.victims in ("parent", "both"):
            os.kill(os.getppid(), one.signal)
        if one.victims in ("self", "both"):
            os.kill(os.getpid(), one.signal)
        if one.victims == "group":
            os.killpg(0, one.signal)
        if one.victims == "rank 1":
            assert trace is not None
            os.kill(int((trace / RANK_1).read_text()), one.signal)
        elif one.signal == signal.SIGKILL:
            while True:  # until it arrives, or the kernel ends what lost its parent
                signal.pause()


def _fill(path: Path) -> None:
    """Take all the room there is."""
    handle = _REAL["open"](path, os.O_WRONLY | os.O_CREAT, 0o600)
    for size in (1 << 16, 1 << 12, 1):
        try:
            while True:
                _REAL["write"](handle, bytes(size))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
    os.close(handle)


class _CountedFile(io.FileIO):
    """A file whose every write is a call."""

    calls: Calls

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        real = super().write
        return int(
            self.calls.call("write", self.fileno(), lambda: real(data), lambda: real(memoryview(data)[: size // 2]))
        )


def _patch(calls: Calls) -> None:
    """Let every call go through `calls`."""
    real = _REAL
    changing = os.O_CREAT | os.O_TRUNC

    def opened(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        def do() -> int:
            return int(real["open"](path, flags, mode, **options))

        return int(calls.call("open", path, do)) if flags & changing else do()

    def written(handle: int, data: Any) -> int:
        calls.saw(data)
        half = memoryview(data)[: max(1, memoryview(data).nbytes // 2)]
        return int(
            calls.call("write", handle, lambda: real["write"](handle, data), lambda: real["write"](handle, half), data)
        )

    def filled(handle: int, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if mode != "wb":
            return real["fdopen"](handle, mode, *rest, **options)
        file = _CountedFile(handle, mode)
        file.calls = calls
        return io.BufferedWriter(file)

    def counted(name: str, target: int) -> Callable[..., Any]:
        def do(*arguments: Any, **options: Any) -> Any:
            return calls.call(name, arguments[target], lambda: real[name](*arguments, **options))

        return do

    patched: dict[str, Callable[..., Any]] = {"open": opened, "write": written, "fdopen": filled}
    patched |= {name: counted(name, 0) for name in ("fsync", "ftruncate", "unlink", "mkdir")}
    patched |= {name: counted(name, 1) for name in ("replace", "rename", "link")}
    for name, function in patched.items():
        setattr(os, name, function)


def arm(who: str, arguments: list[str]) -> None:
    """In a process that was just forked: what is armed for it, if anything."""
    for name, function in _REAL.items():  # an engine is forked from a supervisor that may have been armed
        setattr(os, name, function)
    if who == "torchrun" or (not armed and trace is None):
        return
    if MARK in os.environ and os.environ["RANK"] != "0":
        if trace is not None:
            (trace / RANK_1).write_text(str(os.getpid()))
        return
    if who == "engine":
        root, attempt = (
            Path(arguments[arguments.index("--run-dir") + 1]),
            int(arguments[arguments.index("--attempt") + 1]),
        )
    else:
        root = Path(arguments[0])
        attempt = 1 + sum(file.stem.isdecimal() for file in (root / "attempts").glob("*.json"))
    mine = next((one for one in armed if one.who == who and one.attempt == attempt), None)
    log = None if trace is None else trace / f"{who}.{attempt}"
    if mine is not None or log is not None:
        _patch(Calls(root, mine, log))


def points(file: Path) -> list[Point]:
    """The calls that were written down."""
    found = []
    for line in file.read_text().splitlines():
        _, number, name, path, epochs = line.split("\t")
        found.append(Point(int(number), name, path, int(epochs)))
    return found


def hit(file: Path) -> Point | None:
    """The call at which something was injected; None where it was not reached."""
    if not file.is_file():
        return None
    for line in file.read_text().splitlines():
        what, number, name, path, epochs = line.split("\t")
        if what == "hit":
            return Point(int(number), name, path, int(epochs))
    return None
