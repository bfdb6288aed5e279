"""`cockpit data` finds out whose data a path is, and asks only where several projects would take it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engines.basics import yaml12
from engines.runs.store import find_run
from projects.controls.importers.kinds import why_not
from tests.cockpit.cli.conftest import Cockpit
from tests.support import walking_project


@pytest.fixture(autouse=True)
def walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second installed project, which reads .walk files."""
    walking_project.install(tmp_path / "installed", monkeypatch)


def test_the_project_that_reads_it_describes_it(cockpit: Cockpit, tmp_path: Path) -> None:
    (tmp_path / "steps").mkdir()
    (tmp_path / "steps" / "one.walk").touch()
    answer = cockpit("data", "stats", "steps", "--json")
    assert json.loads(answer.stdout) == {"steps": {"columns": ["file"], "rows": [["one.walk"]]}}


def test_the_project_that_reads_it_parses_it(cockpit: Cockpit, tmp_path: Path) -> None:
    (tmp_path / "one.walk").touch()
    assert cockpit("data", "parse", "one.walk", "out").returncode == 0
    order, _ = yaml12.read(find_run("last").config.read_text())
    given = {"source": str(tmp_path / "one.walk"), "out": str(tmp_path / "out")}
    assert order == {"project": "walk", "task": "parse", "arguments": given}


def test_what_several_read_is_asked_and_what_none_reads_is_told(cockpit: Cockpit, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    answer = cockpit("data", "stats", "notes.txt")
    assert answer.returncode == 1
    assert answer.stderr.startswith(
        f"cockpit: {tmp_path / 'notes.txt'} is not data of any installed project: agent found "
    )
    assert f"; controls found {why_not('notes.txt')}; " in answer.stderr
    assert answer.stderr.endswith("walk found no .walk files; --project NAME reads it anyway.\n")
    np.savez(tmp_path / "a.npz", frames=[1], controls=[1])
    (tmp_path / "one.walk").touch()
    answer = cockpit("data", "stats", ".")
    assert answer.returncode == 2
    assert f"{tmp_path} could be data of controls and walk; choose one with --project NAME." in answer.stderr
    assert "one.walk" in cockpit("data", "stats", ".", "--project", "walk").stdout


def test_archives_of_others_are_not_taken_for_recordings(tmp_path: Path) -> None:
    np.savez(tmp_path / "windows.npz", players=[1])
    assert why_not(str(tmp_path)).startswith("no recording")
    assert why_not(str(tmp_path / "windows.npz")).startswith("no recording")
    (tmp_path / "log.jsonl").write_text(json.dumps({"keyboard": {"keys": []}, "mouse": {}}) + "\n")
    assert why_not(str(tmp_path)) == ""
