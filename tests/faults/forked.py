"""Supervisors and engines forked from this process, with torch imported once: a start takes 0.1 s instead of 4 s.

What is forked runs the `main` of the same module that would be started, with its own pid, group, session, standard
streams and signals; who starts whom, and every line of both programs, is the product's own.
"""

from __future__ import annotations

import importlib
import math
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from torch.distributed.elastic.multiprocessing.subprocess_handler import subprocess_handler

from tests.faults import injected

MODULES = {
    "engines.supervise": "supervisor", "engines.train": "engine", "engines.task": "engine",
    "engines.training.torchrun": "torchrun",
}  # fmt: skip
_Popen = subprocess.Popen
modules_of_engines: Path | None = None
"""Where an engine writes down what it has imported when it ends; None: nowhere."""


class Forked:
    """What `subprocess.Popen` gives of `python -P -m MODULE …`, as far as launcher and supervisor ask for it."""

    def __init__(
        self, module: str, arguments: list[str], *, stdin: Any = None, stdout: Any = None, stderr: Any = None,
        start_new_session: bool = False, process_group: int | None = None, env: dict[str, str] | None = None,
        preexec_fn: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self.returncode: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid:
            if process_group is not None:
                os.setpgid(self.pid, process_group)
            return
        code = 1
        try:
            if start_new_session:
                os.setsid()
            if process_group is not None:
                os.setpgid(0, process_group)
            _streams(stdin, stdout, stderr)
            if env is not None:
                os.environ.update(env)
            if preexec_fn is not None:
                preexec_fn()
            code = _main(module, arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except OSError:
                    code = code or 1
            os._exit(code)

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while timeout is not None and self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("a fork", timeout)
            time.sleep(0.01)
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _streams(stdin: Any, stdout: Any, stderr: Any) -> None:
    """Put these in the place of the three standard streams; None leaves one as it is."""
    nothing = os.open(os.devnull, os.O_RDWR)
    given = [
        target if one is None else nothing if one == subprocess.DEVNULL else one.fileno()
        for target, one in enumerate((stdin, stdout, stderr))
    ]
    for target, source in enumerate([os.dup(one) for one in given]):
        os.dup2(source, target)
        os.close(source)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    os.closerange(3, 1024)


def _main(module: str, arguments: list[str]) -> int:
    sys.argv = [module, *arguments]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    injected.arm(MODULES[module], arguments)
    try:
        return int(importlib.import_module(module).main() or 0)
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        if modules_of_engines is not None and MODULES[module] == "engine":
            modules_of_engines.write_text("\n".join(sorted(sys.modules)))


def _started(args: Any, *rest: Any, **options: Any) -> Any:
    """A fork for what is an engine or a supervisor, a process as ever for anything else (git, hostname)."""
    if isinstance(args, list | tuple) and list(args[:3]) == [sys.executable, "-P", "-m"] and args[3] in MODULES:
        return Forked(args[3], [str(part) for part in args[4:]], **options)
    return _Popen(args, *rest, **options)


@contextmanager
def forks() -> Iterator[None]:
    """Engines and supervisors that are started inside the `with` are forks of this process."""
    with mock.patch.object(subprocess, "Popen", _started), mock.patch.object(subprocess_handler, "Popen", _started):
        yield
