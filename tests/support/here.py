"""What an engine's process does, done in the test's own: each of its own takes four seconds of CPU time to load torch.

For tests in which its being a process is not what is tested.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from cockpit.cli import checking, data, following, replaying
from cockpit.core.launch import demo
from engines import task
from engines.basics.errors import UserError
from engines.contract.rundir import Attempt, ProcessMark, RunDirectory
from engines.runs import launch
from engines.runs.resumption import Resumption
from engines.runtime.attempt import carry_out
from engines.supervise import Supervisor
from engines.training.engine import train


def start(run: RunDirectory, resume: Resumption | None = None) -> int:
    """As `launch.start`, but the attempt is over when its number is given."""
    number = max(run.attempt_numbers(), default=0) + 1
    attempt = Attempt(number=number, started=time.time(), supervisor=ProcessMark(os.getpid(), 0.0))
    run.write_attempt(attempt)
    if resume is not None:
        resume.carry_out(run)
    work = train if run.info.kind == "training" else task.work
    with open(run.stdout, "a") as log, redirect_stdout(log), redirect_stderr(log):
        code = carry_out(run, number, work)
    attempt.ended = Supervisor(run)._end(number, code, oom=False)
    run.write_attempt(attempt)
    return number


def answer(module: str, arguments: Sequence[str], *, doing: str) -> Any:
    """As `ask_engine`."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", [module, *arguments])
        code = importlib.import_module(module).main()
    if code != 0:
        raise UserError(err.getvalue().rstrip(), exit_code=code)
    return msgspec.json.decode(out.getvalue())


@contextmanager
def engines_here() -> Iterator[None]:
    """Commands that stay with a run to its end, a demo, and questions to the torch side start no process."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (following, demo):
            patch.setattr(module, "launch", SimpleNamespace(**{**vars(launch), "start": start}))
        for asking in (checking, data, replaying):
            patch.setattr(asking, "ask_engine", answer)
        yield
