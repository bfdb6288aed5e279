"""The command as a person runs it, in an empty folder with its own runs: in this process, or as one of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from cockpit.cli import main

Answer = subprocess.CompletedProcess[str]
Cockpit = Callable[..., Answer]
COMMAND = [sys.executable, "-P", "-m", "cockpit.cli"]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The runs folder of this test, for its processes too."""
    folder = tmp_path / "runs"
    folder.mkdir()
    with monkeypatch.context() as patch:
        patch.setenv("COCKPIT_RUNS", str(folder))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield folder
    time.tzset()


@pytest.fixture
def cockpit(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cockpit:
    """Runs `cockpit …` to its end, without the third of a second that a process takes; an escaping error fails.

    What only a process can show (signals, pipes, a terminal, another environment) is shown with one, by `COMMAND`.
    """
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Answer:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with monkeypatch.context() as patch, redirect_stdout(out), redirect_stderr(err), open(os.devnull) as nothing:
            patch.setattr(sys, "stdin", nothing)
            try:
                code = main(arguments)
            except SystemExit as end:  # of the parser: help and wrong use
                code = int(end.code or 0)
        printed, told = (stream.buffer.getvalue().decode() for stream in (out, err))
        return Answer(["cockpit", *arguments], code, printed, told)

    return run


def in_a_process(folder: Path, *arguments: str, **environment: str) -> Answer:
    """`cockpit …` as a process, with more in its environment."""
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
