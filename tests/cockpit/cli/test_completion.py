"""Completion as bash asks for it: through the function that `cockpit completion bash` prints."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cockpit.cli.conftest import Cockpit
from tests.support.fake_run import FakeRun

Completed = Callable[[str], list[str]]
ROOT = Path(__file__).resolve().parents[3]
ASK = """
. ./completion
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
_python_argcomplete cockpit
printf '%s\\n' "${COMPREPLY[@]}"
"""

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")


@pytest.fixture
def completed(cockpit: Cockpit, tmp_path: Path) -> Completed:
    """What bash offers after a line, in the folder of the test."""
    program = tmp_path / "bin" / "cockpit"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m cockpit.cli "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "completion").write_text(cockpit("completion", "bash").stdout)

    def offered(line: str) -> list[str]:
        path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
        answer = subprocess.run(
            ["bash", "-c", ASK, "ask", line], cwd=tmp_path, env={**os.environ, "PATH": path}, check=True,
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        return answer.stdout.split()

    return offered


@pytest.mark.behaviour("shell-completes")
def test_commands_and_options(completed: Completed) -> None:
    assert completed("cockpit res") == ["resume"]
    assert {"--epoch", "--stage"} <= set(completed("cockpit fork x --"))


@pytest.mark.behaviour("shell-completes")
def test_runs_by_word_and_label_as_text(completed: Completed, runs: Path) -> None:
    FakeRun(runs, "controls-20261128-100000-elm", label="wide").begin()
    FakeRun(runs, "controls-20261128-110000-oak", label="x$(touch broken)\x1b[2J").begin()
    (runs / "damaged").mkdir()
    (runs / "damaged" / "run.json").write_text("{")
    assert completed("cockpit show el") == ["elm"]
    assert completed("cockpit show wi") == ["wide"]
    assert completed("cockpit show las") == ["last"]
    assert "controls-20261128-110000-oak" in completed("cockpit stop controls")
    assert not (runs.parent / "broken").exists()


@pytest.mark.behaviour("shell-completes")
def test_configs_and_the_keys_of_the_one_that_was_typed(
    completed: Completed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.yaml").write_text("project: controls\ndata:\n  path: x\n")
    assert completed("cockpit train mi") == ["mine.yaml"]
    keys = completed("cockpit train ~/mine.yaml --set training.ba")
    assert keys == ["training.batch_size="]


@pytest.mark.behaviour("shell-completes")
def test_it_is_installed_once(cockpit: Cockpit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".bashrc").write_text("alias l=ls")
    assert cockpit("completion", "bash", "--install").returncode == 0
    once = (tmp_path / ".bashrc").read_text()
    assert cockpit("completion", "bash", "--install").returncode == 0
    assert (tmp_path / ".bashrc").read_text() == once
    assert once.startswith("alias l=ls\n")
    assert subprocess.run(
        ["bash", "-c", ". ./.bashrc; complete -p cockpit"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.rstrip().endswith("cockpit")  # fmt: skip
    assert cockpit("completion", "fish", "--install").returncode == 0
    assert (tmp_path / ".config" / "fish" / "completions" / "cockpit.fish").is_file()
    assert "bash, zsh, fish" in cockpit("completion", "tcsh").stderr
