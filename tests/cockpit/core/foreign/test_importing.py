"""A log becomes a run that every screen and command knows: right values, restarts superseded, nothing overwritten."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.core.foreign import importing
from cockpit.core.foreign.importing import import_log
from cockpit.core.foreign.kinds import open_logs
from cockpit.core.foreign.run_directory import RunSource
from engines.basics.errors import DataError, UserError
from engines.contract import events as ev
from engines.contract.rundir import RunDirectory
from engines.contract.steps import read_series
from engines.runs.launch import prepare_resume
from engines.runs.state import RunReader
from tests.cockpit.core.foreign.reading import points, read_on


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))


def imported(tmp_path: Path, name: str, text: str, label: str = "") -> RunDirectory:
    (tmp_path / name).write_text(text)
    (source,) = open_logs(tmp_path / name)
    return import_log(source, label)


def rows(run: RunDirectory) -> list[ev.Epoch]:
    reader = RunReader(run)
    assert reader.status().state == "finished"
    assert reader.damaged_lines == 0
    return list(reader.history.epochs.values())


def test_what_a_run_says_of_its_source(tmp_path: Path) -> None:
    run = imported(tmp_path, "log.csv", "step,loss\n1,0.5\n", label="baseline")
    info = run.info
    assert (info.project, info.title, info.label) == ("imported", f"{tmp_path / 'log.csv'} (CSV)", "baseline")
    assert run.path.parent == tmp_path / "runs"
    with pytest.raises(UserError, match="only that program can resume"):
        prepare_resume(run)


def test_every_step_is_there_and_what_was_not_logged_is_no_nan(tmp_path: Path) -> None:
    run = imported(tmp_path, "log.jsonl", '{"step":1,"a":1}\n{"step":2,"a":NaN,"b":5}\n{"step":9,"b":6,"time":1.5}\n')
    steps, values = read_series(run.steps, "a")
    assert steps.tolist() == [1, 2]
    assert (values[0], np.isnan(values[1])) == (1.0, True)
    assert [column.tolist() for column in read_series(run.steps, "b")] == [[2, 9], [5, 6]]
    assert [column.tolist() for column in read_series(run.steps, "time_")] == [[9], [1.5]]  # `time` is the clock's
    series = read_on(RunSource(run.path)).series()
    assert points(series["a"]) == [(1.0, 1.0), (2.0, "nan")]
    assert points(series["b"]) == [(2.0, 5.0), (9.0, 6.0)]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("epoch,loss\n1,3\n2,2\n3,1\n", [1, 2, 3]),
        ("epoch,loss\n0,3\n1,2\n2,1\n", [1, 2, 3]),  # counted from 0 there, from 1 here
        ("epoch,step,loss\n0,10,3\n0,20,2\n1,30,1\n1,40,0\n", [1, 2]),
        ("epoch,step,loss\n0,0,3\n0.5,10,2\n1,20,1\n1.5,30,1\n2,40,0\n", [0, 1, 2]),  # 0: before the first step
    ],
)
def test_epochs_are_the_logs_own(text: str, numbers: list[int], tmp_path: Path) -> None:
    found = rows(imported(tmp_path, "log.csv", text))
    assert [row.epoch for row in found] == numbers
    last = {line.split(",")[0]: float(line.split(",")[-1]) for line in text.splitlines()[1:]}
    assert found[-1].train["loss"] == list(last.values())[-1]


def test_steps_between_told_epochs_belong_to_the_one_that_ends_them(tmp_path: Path) -> None:
    logged: list[dict[str, float]] = []
    for epoch in (1, 2):
        logged += [{"step": 10 * epoch + step, "loss": 100 - 10 * epoch - step} for step in range(-10, 0)]
        logged.append({"epoch": epoch, "val_loss": epoch})
    logged += [{"step": 20, "loss": 80.0}, {"test_acc": 0.75}]  # the third epoch has begun
    found = rows(imported(tmp_path, "log.jsonl", "".join(json.dumps(row) + "\n" for row in logged)))
    assert [(row.epoch, row.step, row.train["loss"]) for row in found] == [(1, 9, 91), (2, 19, 81)]
    assert [row.validation for row in found] == [{"val_loss": 1}, {"val_loss": 2, "test_acc": 0.75}]


def test_a_log_without_epochs_has_a_row_for_each_evaluation(tmp_path: Path) -> None:
    lines = [f"s:{step} trl:{100 - step}.0" + f"\ns:{step} tel:{200 - step}.0" * (step % 10 == 0) for step in range(35)]
    run = imported(tmp_path, "main.log", "\n".join(lines) + "\n")
    found = rows(run)
    assert [(row.epoch, row.step) for row in found] == [(1, 0), (2, 10), (3, 20), (4, 30)]
    assert [(row.train["trl"], row.validation["tel"]) for row in found] == [(100, 200), (90, 190), (80, 180), (70, 170)]
    assert read_series(run.steps, "trl")[0].tolist() == list(range(35))


def test_restarts_are_superseded_attempts(tmp_path: Path) -> None:
    trials = [[(step, 10.0 * trial + step) for step in (0, 5, 10)] for trial in range(3)]
    text = "".join(f"step:{step}/10 val_loss:{value}\n" for trial in trials for step, value in trial)
    run = imported(tmp_path, "log.txt", text)
    assert run.attempt_numbers() == [1, 2, 3]
    assert [column.tolist() for column in read_series(run.steps, "val_loss")] == [[0, 5, 10], [20, 25, 30]]
    history = RunReader(run)
    history.poll()
    assert [row.validation["val_loss"] for row in history.history.epochs.values()] == [20, 25, 30]
    assert sorted(row.validation["val_loss"] or 0.0 for row in history.history.superseded) == [0, 5, 10, 10, 15, 20]
    source = read_on(RunSource(run.path))
    assert points(source.series()["val_loss"]) == [(0.0, 20.0), (5.0, 25.0), (10.0, 30.0)]
    old = [(steps.tolist(), values.tolist()) for steps, values in source.series()["val_loss"].old]
    assert old == [([0, 5, 10], [0, 5, 10]), ([0, 5, 10], [10, 15, 20])]


def test_an_import_of_an_import_has_the_same_series(tmp_path: Path) -> None:
    run = imported(tmp_path, "log.jsonl", '{"step":1,"epoch":1,"loss":2}\n{"step":2,"epoch":1,"loss":NaN}\n')
    again = import_log(read_on(RunSource(run.path)))
    for name in ("loss", "train.loss"):
        first, second = (read_on(RunSource(one.path)).series()[name] for one in (run, again))
        assert points(first) == points(second)


def test_a_second_import_is_another_run(tmp_path: Path) -> None:
    runs = [imported(tmp_path, "log.csv", f"step,loss\n1,{value}\n") for value in (0.5, 0.25)]
    assert [read_series(run.steps, "loss")[1].tolist() for run in runs] == [[0.5], [0.25]]


numbers = st.one_of(st.floats(), st.integers(), st.none(), st.text(max_size=3), st.booleans())
records = st.dictionaries(st.sampled_from(["step", "epoch", "time", "seed", "loss", "val", "x y", "lr"]), numbers)


@given(st.lists(records, max_size=8))
@settings(max_examples=40, deadline=None)
def test_any_log_makes_a_whole_run_or_says_why_not(rows_logged: list[dict[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("COCKPIT_RUNS", f"{folder}/runs")
        text = "".join(json.dumps(record) + "\n" for record in rows_logged)
        with contextlib.suppress(DataError):  # nothing in it was a number
            rows(imported(Path(folder), "log.jsonl", text))


def test_nothing_to_import_and_a_failure_leave_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="has no numbers to import"):
        imported(tmp_path, "empty.csv", "")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(importing, "_write_steps", full)
    with pytest.raises(OSError, match="No space left"):
        imported(tmp_path, "log.csv", "step,loss\n1,0.5\n")
    assert list((tmp_path / "runs").glob("*")) == []
