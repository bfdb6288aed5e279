"""The command as a person runs it: a process of its own, in an empty folder, with its own runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Answer = subprocess.CompletedProcess[str]
Cockpit = Callable[..., Answer]
COMMAND = [sys.executable, "-P", "-m", "cockpit.cli"]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The runs folder of this test, for its processes too."""
    folder = tmp_path / "runs"
    folder.mkdir()
    monkeypatch.setenv("COCKPIT_RUNS", str(folder))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("TZ", "UTC")
    return folder


@pytest.fixture
def cockpit(runs: Path, tmp_path: Path) -> Cockpit:
    """Runs `cockpit …` to its end. A traceback is never an answer."""

    def run(*arguments: str, **environment: str) -> Answer:
        answer = subprocess.run(
            [*COMMAND, *arguments],
            cwd=tmp_path,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert not answer.stderr.startswith("Traceback"), answer.stderr
        assert "\nTraceback" not in answer.stderr, answer.stderr
        return answer

    return run
