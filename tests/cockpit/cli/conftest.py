"""The command as a person runs it, in an empty folder with its own runs: in this process, or as one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cockpit.cli import steering
from tests.support.command import Answer, called

Cockpit = Callable[..., Answer]
COMMAND = [sys.executable, "-P", "-m", "cockpit.cli"]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The runs folder of this test, for its processes too."""
    folder = tmp_path / "runs"
    folder.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(steering, "ANSWER_SECONDS", 60.0)  # of an engine on a busy machine
        patch.setenv("COCKPIT_RUNS", str(folder))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield folder
    time.tzset()


@pytest.fixture
def cockpit(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cockpit:
    """Runs `cockpit …` to its end, in this process: see `called`."""
    monkeypatch.chdir(tmp_path)
    return called


def in_a_process(folder: Path, *arguments: str, **environment: str) -> Answer:
    """`cockpit …` as a process, with more in its environment."""
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
