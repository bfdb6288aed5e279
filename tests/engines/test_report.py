"""The Reporter in real scripts: shown live, its end told from facts, and never in the training's way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from engines.basics.errors import UserError
from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory
from engines.contract.steps import ABSENT, StepWriter, logged, read_segments, read_series
from engines.report import Reporter
from engines.reporter import run as reported_run
from engines.reporter.steps import StepBuffer
from engines.runs import launch, stall
from engines.runs.state import RunReader
from engines.runs.store import list_runs
from engines.supervisor import watchdog
from tests.engines.conftest import wait_for

Script = Callable[[str], "subprocess.Popen[str]"]

BEGIN = """
import sys
from engines.report import Reporter
assert "torch" not in sys.modules
with Reporter("toy net", total_epochs=3, label="mine") as report:
    for step in range(10):
        report.log(step=step, loss=1 / (1 + step), lr=1e-3)
    report.epoch(1, score=0.25, train_loss=0.5, val_loss=2.0)
    print(report.path, flush=True)
"""
WAIT = "    sys.stdin.readline()\n"


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "runs"
    monkeypatch.setenv("COCKPIT_RUNS", str(folder))
    return folder


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Script]:
    """Starts a script that is no part of this project."""
    started: list[subprocess.Popen[str]] = []

    def start(text: str) -> subprocess.Popen[str]:
        file = tmp_path / "their_train.py"
        file.write_text(text)
        process = subprocess.Popen(
            [sys.executable, str(file)], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def run_of(process: subprocess.Popen[str]) -> RunDirectory:
    assert process.stdout is not None
    return RunDirectory(Path(process.stdout.readline().strip()))


def cockpit(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-P", "-m", "cockpit.cli", *arguments], capture_output=True, text=True, check=False, timeout=99
    ).stdout


def test_a_script_is_a_live_run_until_it_is_finished(script: Script) -> None:
    process = script(BEGIN + WAIT + "    report.epoch(2, score=0.5, train_loss=0.25, val_loss=1.0)\n" + WAIT)
    assert process.stdin is not None
    run = run_of(process)
    status = RunReader(run).status()
    assert (status.state, run.info.project, run.info.label) == ("running", "toy-net", "mine")
    assert lock_holder(run.lock) == process.pid
    assert [line.split()[1:3] for line in cockpit("ls").splitlines()[2:]] == [["running", "1/3"]]
    shown = cockpit("show", "last")
    assert "reported by their_train.py" in shown
    assert "1 of 3, step 10" in shown
    process.stdin.write("\n")
    process.stdin.flush()
    reader = RunReader(run)
    wait_for("the second row", lambda: reader.poll() and 2 in reader.history.epochs)
    assert reader.history.best is reader.history.epochs[2]
    process.communicate("\n")
    assert process.returncode == 0
    assert RunReader(run).status().state == "finished"
    rows = [line.split() for line in cockpit("tail", "last").splitlines()[2:]]
    assert rows == [["1", "0.5000", "2.0000", "0.250", "*"], ["2", "0.2500", "1.0000", "0.500", "*"]]
    steps, losses = read_series(run.steps, "loss")
    assert steps.tolist() == list(range(10))
    np.testing.assert_array_equal(losses, 1 / np.arange(1, 11))


@pytest.mark.parametrize(
    ("end", "state", "detail"),
    [
        (ValueError("bad batch"), "failed", "exit code 1 after step 4: ValueError: bad batch"),
        (KeyboardInterrupt(), "stopped", "interrupted"),
        (SystemExit(0), "finished", ""),
        (SystemExit("no data"), "failed", "exit code 1 after step 4: SystemExit: no data"),
    ],
)
def test_what_leaves_the_block_is_how_the_run_ended(end: BaseException, state: str, detail: str) -> None:
    def train(report: Reporter) -> None:
        with report:
            report.log(step=4, loss=1.0)
            raise end

    report = Reporter("ends")
    with pytest.raises(type(end)):
        train(report)
    status = RunReader(RunDirectory(report.path)).status()
    assert (status.state, status.detail) == (state, detail)


def test_a_killed_script_is_lost_with_its_rows_kept(script: Script) -> None:
    process = script(BEGIN + WAIT)
    run = run_of(process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    reader = RunReader(run)
    assert reader.status().state == "lost"
    assert [row.score for row in reader.history.epochs.values()] == [0.25]


def test_a_forked_worker_neither_writes_nor_ends_the_run(script: Script) -> None:
    process = script(
        BEGIN
        + "    import os\n"
        + "    if os.fork() == 0:\n"
        + "        report.log(step=99, loss=9.0)\n"
        + "        report.epoch(9, score=9.0)\n"
        + "        sys.exit(0)\n"  # through the end of the with block
        + "    os.wait()\n"
        + "    print('waited', flush=True)\n"
        + WAIT
    )
    run = run_of(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "waited\n"
    reader = RunReader(run)
    assert reader.status().state == "running"
    assert lock_holder(run.lock) == process.pid
    process.communicate("\n")
    assert RunReader(run).status().state == "finished"
    assert list(reader.history.epochs) == [1]
    assert read_series(run.steps, "loss")[0].max() == 9


def test_a_stop_is_heard_and_other_commands_are_refused(script: Script) -> None:
    process = script(BEGIN + "    while not report.stop_requested:\n        report.log(loss=1.0)\n")
    run = run_of(process)
    pause, stop = cmd.Pause(attempt=1), cmd.Stop(attempt=1)
    launch.send(run, pause)
    launch.send(run, stop)
    process.communicate()
    reader = RunReader(run)
    assert reader.status().state == "stopped"
    answers = [(answer.command.id, answer.state) for answer in reader.history.answers]
    assert answers == [(pause.id, "refused"), (stop.id, "seen"), (stop.id, "applied")]


def test_threads_share_a_reporter_and_steps_logged_in_parts_become_whole(runs: Path) -> None:
    with Reporter("threads") as report:
        halves = [
            threading.Thread(target=lambda name=name: [report.log({name: step / 2}, step=step) for step in range(1)])
            for name in ("a", "b", "c/d")
        ]
        for thread in halves:
            thread.start()
        for thread in halves:
            thread.join()
        many = [threading.Thread(target=lambda: [report.log(n=1.0) for _ in range(200)]) for _ in range(4)]
        for thread in many:
            thread.start()
        for thread in many:
            thread.join()
    (run,) = list_runs(runs)
    assert [read_series(run.steps, name)[0].tolist() for name in ("a", "b", "c/d")] == [[0.0]] * 3
    assert read_series(run.steps, "n")[0].tolist() == list(range(1, 801))


def test_a_full_disk_warns_once_and_loses_nothing_that_came_back(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reported_run, "FLUSH_SECONDS", 0.0)
    full = [False]
    plainly = StepWriter.append

    def append(self: StepWriter, records: np.ndarray) -> None:
        if full[0]:
            raise OSError(28, "No space left on device")
        plainly(self, records)

    monkeypatch.setattr(StepWriter, "append", append)
    with Reporter("disk") as report:
        for step in range(30):
            full[0] = 10 <= step < 20
            report.log(step=step, loss=float(step))
            if step == 15:
                report.epoch(1, score=0.5)
    (run,) = list_runs(runs)
    assert capsys.readouterr().err == f"cockpit reporter: {run.path} cannot be written: No space left on device\n"
    assert read_series(run.steps, "loss")[1].tolist() == list(range(30))
    reader = RunReader(run)
    assert reader.status().state == "finished"
    assert list(reader.history.epochs) == [1]


def test_what_is_no_number_is_told_once_and_left_out(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Reporter("odd") as report:
        for step in range(3):
            report.log(step=step, loss=np.float32(0.5), bad=[1, 2], time=3.0)
            report.log(step="x", loss=1.0)  # type: ignore[arg-type]
        report.epoch(1, score=float("nan"), loss=float("inf"))
    report.log(loss=1.0)  # after the end: nothing
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == 2
    assert warnings[0] == "cockpit reporter: bad is ignored: list is not a number"
    (run,) = list_runs(runs)
    assert [column.tolist() for column in read_series(run.steps, "loss")] == [[0, 1, 2], [0.5] * 3]
    assert read_series(run.steps, "time_")[1].tolist() == [3.0] * 3
    reader = RunReader(run)
    reader.poll()
    assert reader.history.epochs[1].nonfinite == ["train.loss", "score"]
    assert reader.history.best is None


def test_names_that_come_later_begin_one_segment_each_and_gaps_are_no_nan(tmp_path: Path) -> None:
    folder = tmp_path / "steps"
    folder.mkdir()
    buffer = StepBuffer(folder, 1)
    for step in range(100):
        buffer.add(step, None, {"loss": np.nan if step == 3 else 1.0, **({"val": 2.0} if step % 10 == 9 else {})})
        buffer.flush()
    buffer.close()
    assert [len(rows) for _, rows in read_segments(folder)] == [9, 91]
    steps, losses = read_series(folder, "loss")
    assert steps.tolist() == list(range(100))
    assert np.flatnonzero(np.isnan(losses)).tolist() == [3]
    assert read_series(folder, "val")[0].tolist() == list(range(9, 100, 10))


def test_absent_is_a_nan_of_its_own() -> None:
    values = np.array([ABSENT, np.nan, -np.nan, 1.0, np.inf])
    assert np.isnan(values[0])
    assert logged(values).tolist() == [False, True, True, True, True]
    assert logged(np.full((2, 3), ABSENT)[:, 1]).tolist() == [False, False]


def test_a_run_that_cannot_be_made_is_said_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="run name needs"):
        Reporter("///")
    (tmp_path / "file").touch()
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "file" / "runs"))
    with pytest.raises(UserError, match="No run directory can be made"):
        Reporter("x")


def test_one_log_call_in_many_writes(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gathered: a loop of a thousand quick steps makes few writes, not a thousand."""
    writes: list[int] = []
    plainly = StepWriter.append

    def append(self: StepWriter, records: np.ndarray) -> None:
        writes.append(len(records))
        plainly(self, records)

    monkeypatch.setattr(StepWriter, "append", append)
    monkeypatch.setattr(reported_run, "FLUSH_SECONDS", 3600.0)
    with Reporter("quick") as report:
        for step in range(1000):
            report.log(step=step, loss=1.0)
    assert sum(writes) == 1000
    assert len(writes) <= 2


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def told(report: Reporter) -> list[tuple[str, bool]]:
    """Code of every alert of the run, and whether it says that it is over."""
    reader = RunReader(RunDirectory(report.path))
    reader.poll()
    return [(alert.code, alert.over) for alert in reader.history.alerts]


@pytest.mark.behaviour("watched-over-same-rules")
def test_a_loss_that_is_not_finite_is_told_once_until_all_are(runs: Path) -> None:
    with Reporter("odd") as report:
        report.log(step=0, loss=1.0, best_loss=float("inf"), accuracy=float("nan"))
        report.log(step=1, loss=float("nan"), lr=1e-3)
        report.log(step=2, loss=float("-inf"), lr=1e-3)
        report.log(step=3, lr=1e-3)
        report.epoch(1, val_loss=float("nan"))
        report.log(step=4, loss=0.5)
        report.epoch(2, val_loss=0.5)
        report.log(step=9, **{"loss/policy": float("inf"), "value_loss": float("nan")})
    assert told(report) == [("nonfinite", False), ("nonfinite", True), ("nonfinite", False)]
    reader = RunReader(RunDirectory(report.path))
    reader.poll()
    first, over, second = reader.history.alerts
    assert (first.step, first.text) == (1, "step 1: loss is nan")
    assert over.step == 5
    assert second.text == "step 9: loss/policy is inf, value_loss is nan"


@pytest.mark.behaviour("watched-over-same-rules")
def test_plateau_overfit_gradient_and_disk_are_told_of_a_script(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "SECONDS", 0.02)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10**6))
    with Reporter("learns by heart") as report:
        for epoch in range(1, 31):
            for step in range(10):
                norm = 50.0 if epoch > 28 else 1.0
                report.log(step=10 * (epoch - 1) + step, loss=1 / epoch, grad_norm=norm)
            losses = {"train_loss": 1 / epoch, "val/loss": 0.4 + 0.02 * abs(epoch - 5)}
            report.epoch(epoch, losses, score=0.5 if epoch == 5 else 0.4)
        wait_for("all alerts", lambda: len(told(report)) == 4)
    assert sorted(told(report)) == [("disk", False), ("gradient", False), ("overfit", False), ("plateau", False)]


@pytest.mark.behaviour("watched-over-same-rules")
def test_a_script_that_hangs_is_told_as_stalled_and_so_is_its_going_on(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "SECONDS", 0.02)
    monkeypatch.setattr(reported_run, "FLUSH_SECONDS", 0.0)
    monkeypatch.setattr(reported_run, "LEAST_SILENCE", 0.2)
    monkeypatch.setitem(stall.LEAST_SECONDS, "training", 0.0)
    monkeypatch.setattr(stall, "UNKNOWN_SECONDS", 0.2)
    with Reporter("hangs") as report:
        report.log(loss=1.0)
        wait_for("the stall", lambda: told(report) == [("stall", False)])
        report.log(loss=1.0)
        wait_for("its end", lambda: ("stall", True) in told(report))


def test_no_short_silence_of_a_script_is_a_stall() -> None:
    """It does not say when it evaluates: what is usual between its steps says nothing of that."""
    rule = stall.StallRule(reported_run.LEAST_SILENCE)
    for step in range(100):
        assert rule.feed("training", step, 5.0) is None
    for _ in range(359):
        assert rule.feed("training", 99, 5.0) is None
    assert rule.feed("training", 99, 5.0) is not None


@pytest.mark.behaviour("watched-over-same-rules")
def test_a_script_that_leaves_without_a_word_is_not_held_by_the_thread_that_watches_it(script: Script) -> None:
    process = script("from engines.report import Reporter\nReporter('theirs').log(loss=1.0)\n")
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0
