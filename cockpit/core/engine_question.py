"""Short questions to the torch side: a process that prints one JSON document and leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from engines.basics.errors import UserError

LOG_LINES = 20
GRACE_SECONDS = 5.0
"""How long a question that was given up may clean up after itself."""


class GivenUp(Exception):
    """The question was cancelled before it was answered."""


class EngineQuestion:
    """`python -P -m module arguments…`, asked once.

    In a session of its own: Ctrl-C in the terminal is for this process, which takes the other with it; so does its end,
    whatever that is.
    """

    def __init__(self, module: str, arguments: Sequence[str]) -> None:
        self._module = module
        self._command = [sys.executable, "-P", "-m", "engines.asked", str(os.getpid()), module, *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self._given_up = False
        self._turn = threading.Lock()
        """A cancel comes before the process is started or after, never while."""

    def answer(self, progress: Callable[[str], object] = lambda line: None) -> Any:
        """What it printed, decoded; waits for it. Every line of its stderr is `progress`, called from another thread.

        Raises `UserError` with the sentences it wrote instead, and its exit code; `GivenUp` after `cancel`.
        """
        process = self._start()
        errors: deque[str] = deque(maxlen=LOG_LINES)
        reader = threading.Thread(target=_read_lines, args=(process, errors, progress), daemon=True)
        reader.start()
        try:
            assert process.stdout is not None
            with process.stdout as stdout:
                printed = stdout.read()
            reader.join()
            code = process.wait()
        except BaseException:
            self.cancel()
            process.wait()
            raise
        if self._given_up:
            raise GivenUp
        if code != 0:
            sentences = "\n".join(errors) or f"{self._module} ended with exit code {code}."
            raise UserError(sentences, exit_code=code if code in (1, 2) else 1)
        try:
            return msgspec.json.decode(printed)
        except msgspec.DecodeError as error:
            raise UserError(f"{self._module} did not print JSON ({error}).", exit_code=1) from None

    def cancel(self) -> None:
        """Give it up: interrupted now, killed with all it started if that is not enough. Does not wait."""
        with self._turn:
            self._given_up = True
            process = self._process
        if process is None or process.poll() is not None:
            return
        _signal(process, signal.SIGINT)

        def insist() -> None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
                return
            _signal(process, signal.SIGKILL)

        threading.Thread(target=insist).start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._turn:
            if self._given_up:
                raise GivenUp
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
            return self._process


def _read_lines(process: subprocess.Popen[bytes], last: deque[str], progress: Callable[[str], object]) -> None:
    assert process.stderr is not None
    with process.stderr as stderr:
        for raw in stderr:
            line = raw.decode("utf-8", "replace").rstrip()
            last.append(line)
            progress(line)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """To the whole session; a process that has ended meanwhile is fine."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
