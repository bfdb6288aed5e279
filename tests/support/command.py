"""The `cockpit` command called in the test's own process: one of its own takes a third of a second and more."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from cockpit.cli import main

Answer = subprocess.CompletedProcess[str]


def called(*arguments: str) -> Answer:
    """What `cockpit …` prints, and its exit code; an error that escapes fails the test.

    What only a process can show (signals, pipes, a terminal, another environment) needs one.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err), open(os.devnull) as nothing:
        patch.setattr(sys, "stdin", nothing)
        try:
            code = main(arguments)
        except SystemExit as end:  # of the parser: help and wrong use
            code = int(end.code or 0)
    printed, told = (stream.buffer.getvalue().decode() for stream in (out, err))
    return Answer(["cockpit", *arguments], code, printed, told)
