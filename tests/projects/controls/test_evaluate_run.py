"""A run scored on another folder of recordings: on its own validation sessions it finds what the run's report says."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from engines.basics.errors import DataError, UserError
from engines.contract.rundir import RunDirectory
from engines.contract.tables import Table
from engines.runs import launch
from engines.runtime.attempt import carry_out
from engines.training.engine import train
from engines.training.trained import open_run
from projects.controls.evaluate_run import evaluate
from projects.controls.recordings import write_recording
from projects.controls.spec import SPEC
from projects.controls.split import read_split
from tests.projects.controls.sessions import random_session
from tests.projects.controls.task_context import Listener
from tests.projects.controls.test_export_stage import CONFIG


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A finished run; its recordings lie beside it."""
    base = tmp_path_factory.mktemp("trained")
    for k in range(4):
        write_recording(base / "recordings" / f"s{k}.npz", random_session(f"s{k}", 60 + k, k))
    (base / "config.yaml").write_text(CONFIG)
    changed = [f"data.path={base / 'recordings'}", "post_processing.pulse_margin=0"]
    run = launch.prepare_training(base / "config.yaml", changed, run_dir=base / "a-run")
    assert carry_out(run, 1, train) == 0
    return run


def tables_of(run: RunDirectory, data: Path) -> dict[str, Table]:
    context = Listener()
    evaluate({"run": str(run.path), "data": str(data)}, context)
    assert context.told[-1] == (3, 3, "steps")
    return dict(context.tables)


def reported(run: RunDirectory) -> dict[str, Table]:
    content: dict[str, Table] = msgspec.json.decode(run.report.read_bytes(), type=dict[str, dict[str, Table]])["tables"]
    return content


def rows_of(table: Table) -> dict[str, tuple[object, ...]]:
    return {str(row[0]): tuple(row[1:]) for row in table.rows}


def test_on_its_validation_sessions_it_says_what_the_run_said(trained: RunDirectory, tmp_path: Path) -> None:
    opened = open_run(trained)
    _, validation = read_split(opened.settings.data)
    source = Path(opened.settings.data.path)
    (tmp_path / "held").mkdir()
    for recording in validation:
        shutil.copy(source / f"{recording.name}.npz", tmp_path / "held")
    tables = tables_of(trained, tmp_path / "held")
    assert rows_of(tables["heads"])["combined score"] == (pytest.approx(opened.log.best_score, abs=1e-6),)
    theirs_all = reported(trained)
    for name in ("heads", "baselines", "sessions", "change frames"):
        ours, theirs = rows_of(tables[name]), rows_of(theirs_all[name])
        assert ours.keys() == theirs.keys(), name
        for key, row in ours.items():
            assert list(row) == pytest.approx(list(theirs[key]), abs=1e-5), (name, key)
    assert "was trained on" not in tables["baselines"].note


def test_other_sessions_have_other_scores_and_rows(trained: RunDirectory, tmp_path: Path) -> None:
    """One of them is a training session under another name, and it says so."""
    opened = open_run(trained)
    train_sessions, _ = read_split(opened.settings.data)
    write_recording(tmp_path / "new.npz", random_session("new", 70, 99))
    shutil.copy(Path(opened.settings.data.path) / f"{train_sessions[0].name}.npz", tmp_path / "old.npz")
    tables = tables_of(trained, tmp_path)
    assert list(rows_of(tables["sessions"]))[:2] == ["new", "old"]
    assert [row[0] for row in list(rows_of(tables["sessions"]).values())[:2]] == [41, 31]  # less 29 frames of history
    assert "The run was trained on old:" in tables["baselines"].note


def test_sessions_of_another_rate_are_refused(trained: RunDirectory, tmp_path: Path) -> None:
    fast = random_session("fast", 70, 99)
    write_recording(tmp_path / "fast.npz", replace(fast, fps=30.0, timestamps=np.arange(70) / 30))
    with pytest.raises(
        DataError, match=r"fast\.npz: has 30 frames a second, expected 20, as the run was trained at; `"
    ):
        tables_of(trained, tmp_path)


def test_without_the_training_data_the_run_is_scored_all_the_same(trained: RunDirectory, tmp_path: Path) -> None:
    base = tmp_path / "moved"
    shutil.copytree(trained.path, base)
    run = RunDirectory(base)
    gone = str(open_run(run).settings.data.path)
    run.write_config(run.config.read_text().replace(gone, str(tmp_path / "gone")))
    write_recording(tmp_path / "other" / "new.npz", random_session("new", 70, 99))
    tables = tables_of(run, tmp_path / "other")
    assert tables["baselines"].note.startswith(f"Not made: {tmp_path / 'gone'}: no such folder")
    assert rows_of(tables["heads"])["combined score"][0] is not None


def test_bad_data_is_one_sentence(trained: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        tables_of(trained, tmp_path / "nowhere")
    with pytest.raises(UserError, match="data is missing"):
        evaluate({"run": str(trained.path)}, Listener())


def test_the_command_finds_the_task() -> None:
    task = SPEC.task("evaluate")
    assert (task.function, task.needs) == ("projects.controls.evaluate_run:evaluate", "run")
