"""`cockpit export`: the task is started under a supervisor and followed; what cannot be exported is a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.runs.store import create_run, list_runs
from tests.cockpit.cli.conftest import Cockpit
from tests.support.example_project import ExampleProject

CONFIG = "project: controls\ndata: {path: recordings}\n"


def test_a_run_is_exported_by_a_task_with_a_run_directory_of_its_own(cockpit: Cockpit, runs: Path) -> None:
    training = create_run("controls", CONFIG, kind="training", engine="engines.train", title="a.yaml")
    training.best.write_bytes(b"no checkpoint")
    answer = cockpit("export", "last")
    assert answer.returncode == 1
    assert f"{training.best} is not a whole checkpoint" in answer.stderr
    task = next(run for run in list_runs(runs) if run.info.kind == "task")
    assert task.info.title == f"export of {training.info.id}"
    assert list(training.export.iterdir()) == []
    answer = cockpit("export", "last", "--set", "flat=perhaps")
    assert "flat is 'perhaps', expected true or false" in answer.stderr


def test_what_cannot_be_exported_is_a_sentence(
    cockpit: Cockpit, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = ExampleProject(tmp_path / "example")
    monkeypatch.syspath_prepend(str(example.folder))
    create_run("spiral", "", kind="training", engine="engines.train", title="spiral.yaml")
    answer = cockpit("export", "last")
    assert answer.returncode == 2
    assert "The project 'spiral' has no export of its own; a finished run writes to" in answer.stderr
    reported = create_run("mine", "", kind="training", engine="", title="reported by mine.py")
    assert f"{reported.info.id} is a run of an external program" in cockpit("export", "last").stderr
    task = create_run("controls", "", kind="task", engine="engines.task", title="demo data")
    answer = cockpit("export", task.info.id)
    assert answer.returncode == 2
    assert "is a task (demo data); expected a training" in answer.stderr
    assert len(list_runs(runs)) == 3
