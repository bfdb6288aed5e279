"""A program on a terminal of its own: what it wrote and when, keys, processor time and memory of its processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

COCKPIT = (sys.executable, "-m", "cockpit.cli")
ESCAPE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[P_^][^\x1b]*\x1b\\|[ -/]*[0-~])")
ANSWERS = (  # programs that ask wait for an answer, or for a time-out; every real terminal answers
    (re.compile(rb"\x1b\[0?c"), b"\x1b[?62;22c"),
    (re.compile(rb"\x1b\[6n"), b"\x1b[1;1R"),
    (re.compile(rb"\x1b\]11;\?(?:\x07|\x1b\\)"), b"\x1b]11;rgb:1010/1414/1a1a\x1b\\"),
    (re.compile(rb"\x1b\]10;\?(?:\x07|\x1b\\)"), b"\x1b]10;rgb:c9c9/d1d1/d9d9\x1b\\"),
)
MODES = re.compile(rb"\x1b\[\?(\d+)\$p")
PATIENCE = 300.0


class Terminal:
    """Runs `command` on a pseudo terminal; ends it on leaving the `with`."""

    def __init__(
        self, command: Sequence[str | Path], env: Mapping[str, str] = {}, *, size: tuple[int, int] = (80, 24)
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.written = 0
        """Bytes that the program has written to the terminal."""
        self._unread = b""
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            [str(part) for part in command], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            env={**_environment(), **env},
        )  # fmt: skip
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()
        os.close(self._master)

    def processes(self) -> list[psutil.Process]:
        """The program and what it has started, apart from sessions of their own."""
        try:
            parent = psutil.Process(self._process.pid)
            return [parent, *parent.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def resident(self) -> float:
        """MB resident, of all its processes."""
        total = 0
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
        return total / 1e6

    def processor_seconds(self) -> float:
        times = [process.cpu_times() for process in self.processes()]
        return sum(time.user + time.system for time in times)

    def main_thread_seconds(self) -> float:
        """Processor time of the program's first thread, to the nanosecond: `cpu_times` counts in hundredths."""
        pid = self._process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9

    def press(self, keys: str) -> float:
        """Type, and give the moment; what was written before is forgotten by `wait`."""
        self._read(0)
        self._unread = b""
        os.write(self._master, keys.encode())
        return time.perf_counter()

    def wait(self, pattern: str, *, patience: float = PATIENCE) -> float:
        """The moment when text matching `pattern` came, after what the last wait or key has consumed."""
        return self.wait_all(pattern, patience=patience)[0]

    def wait_all(self, *patterns: str, patience: float = PATIENCE) -> list[float]:
        """The same for several, in any order. Raises `AssertionError` when one did not come in time."""
        wanted = [re.compile(pattern.encode()) for pattern in patterns]
        came: dict[int, float] = {}
        deadline = time.perf_counter() + patience
        while True:
            text, now = ESCAPE.sub(b"", self._unread), time.perf_counter()
            came = {place: now for place, pattern in enumerate(wanted) if pattern.search(text)} | came
            if len(came) == len(wanted):
                self._unread = b""
                return [came[place] for place in range(len(wanted))]
            if now > deadline or not self._read(0.1):
                raise AssertionError(f"never saw all of {patterns}; last: {text[-2000:].decode(errors='replace')!r}")

    def watch(self, seconds: float) -> int:
        """Read for a time, and give the number of bytes."""
        before, deadline = self.written, time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0:
            self._read(left)
        self._unread = b""
        return self.written - before

    def _read(self, seconds: float) -> bool:
        """Take what there is, after at most a time, and answer its questions; False when the program has ended."""
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:
            return False
        self.written += len(data)
        self._unread += data
        for question, answer in ANSWERS:
            if question.search(data):
                os.write(self._master, answer)
        for mode in MODES.findall(data):
            os.write(self._master, b"\x1b[?%s;0$y" % mode)
        return True


def _environment() -> dict[str, str]:
    """A usual terminal; compiled modules are kept, as they are for users who start a program once more."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPYCACHEPREFIX": str(cache() / "compiled")}
    return {**inherited, **own}


def leet() -> Path:
    """The peer's program. Raises `SystemExit` where it is not installed."""
    if found := shutil.which("wandb"):
        return Path(found)
    raise SystemExit("This compares with W&B LEET: `pip install 'wandb>=0.31'` into an environment that is on PATH.")


def cache() -> Path:
    """Where inputs that take long to make are kept."""
    folder = Path(tempfile.gettempdir()) / f"cockpit-benchmarks-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
