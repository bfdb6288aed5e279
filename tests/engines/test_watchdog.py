"""The watchdog: each alert is recorded once an episode, with its end; the engine may hang, nothing may fail."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.rundir import RunDirectory
from engines.contract.steps import StepWriter
from engines.report import Reporter
from engines.runs.state import RunReader, Status
from engines.runs.store import create_run
from engines.supervisor import notify, watchdog
from engines.supervisor.watchdog import Watchdog
from tests.engines.conftest import PATIENCE, wait_for
from tests.support.fake_run import STEPS_PER_EPOCH, FakeRun, epoch

HANGS = """
import sys, time
from pathlib import Path
import numpy as np
from engines.contract import events as ev
from engines.contract.rundir import RunDirectory
from engines.contract.steps import StepWriter
run = RunDirectory(Path(sys.argv[sys.argv.index("--run-dir") + 1]))
say = ev.EventWriter(run.events, 1).write
say(ev.RunStarted(project="toy", device="cpu", epochs=9, steps_per_epoch=9, columns=[], stages=[]))
say(ev.Phase(phase="training"))
steps = StepWriter(run.steps, ["time", "loss"])
for step in range(5):
    steps.append(np.array([[step, 1, time.time(), 0.5]]))
    time.sleep(0.05)
while not (run.path / "wake").exists():
    time.sleep(0.05)
while True:
    step += 1
    steps.append(np.array([[step, 1, time.time(), 0.5]]))
    time.sleep(0.05)
"""
SUPERVISE = """
import sys
from engines.supervisor import watchdog
from engines.runs import stall
watchdog.SECONDS = 0.1
stall.LEAST_SECONDS["training"] = stall.UNKNOWN_SECONDS = 1.0  # it may have hung before it was looked at
from engines.supervise import main
main()
"""


def told(run: RunDirectory) -> list[tuple[str, bool]]:
    """Code of every alert in the events, and whether it says that it is over."""
    reader = RunReader(run)
    reader.poll()
    return [(alert.code, alert.over) for alert in reader.history.alerts]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRun:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return FakeRun(tmp_path).begin().started(epochs=200)


def beside(fake: FakeRun, *, spent: Callable[[], float] = lambda: 0.0) -> Watchdog:
    return Watchdog(fake.run, fake.attempt, budget=10.0, usd_per_hour=2.0, spent=spent)


def log_steps(fake: FakeRun, first: int, count: int, *, norm: float = 1.0, wait: float = 0.0) -> None:
    """Half a second each."""
    steps = np.arange(first, first + count, dtype=float)
    columns = [steps, np.full(count, fake.attempt), 1e9 + steps / 2, np.full(count, wait), np.full(count, norm)]
    StepWriter(fake.run.steps, ["time", "data_wait", "grad_norm"]).append(np.stack(columns, 1))


@pytest.mark.behaviour("run-hangs-while-process")
def test_an_engine_that_hangs_while_its_process_lives_is_told_and_so_is_its_going_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "engine_hangs.py").write_text(HANGS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    run = create_run("toy", "{}", kind="training", engine="engine_hangs", title="test")
    reader = RunReader(run)
    with subprocess.Popen([sys.executable, "-P", "-c", SUPERVISE, str(run.path)], start_new_session=True) as supervisor:
        try:
            wait_for("the stall to be told", lambda: reader.status() == Status("running", "stalled in training"))
            assert "no sign of life for" in reader.history.standing["stall"].text
            (run.path / "wake").touch()
            wait_for("its end to be told", lambda: reader.status() == Status("running", "training"))
        finally:
            os.kill(supervisor.pid, signal.SIGQUIT)
    assert told(run)[:2] == [("stall", False), ("stall", True)]


@pytest.mark.behaviour("goes-wrong-training-s")
def test_the_course_of_the_epochs_is_told_once_and_watched_again_after_an_edit(fake: FakeRun) -> None:
    watch = beside(fake)
    for number in range(1, 31):
        fake.epochs(number, best=min(number, 5), score=0.5 if number == 5 else min(number, 4) / 10)
        watch.look(5)
    assert told(fake.run) == [("plateau", False)]
    edit = cmd.SetLrScale(attempt=1, scale=0.5)
    fake.say(ev.CommandAnswer(command=edit, state="applied", step=30 * STEPS_PER_EPOCH, epoch=30))
    watch.look(5)
    assert told(fake.run) == [("plateau", False), ("plateau", True)]
    for number in range(31, 43):
        fake.epochs(number, score=0.4)
        watch.look(5)
    assert told(fake.run)[2:] == [("plateau", False)]
    reader = RunReader(fake.run)
    reader.poll()
    assert reader.history.alerts[0].step == 17 * STEPS_PER_EPOCH
    assert reader.history.alerts[0].text == "no better score than 0.5 since epoch 5"


def test_overfit_is_told_of_epochs_with_the_same_weights(fake: FakeRun) -> None:
    watch = beside(fake)
    for number in range(1, 16):
        row = epoch(number, score=0.0, best=number == 1)
        row.validation = {"loss": 0.4 + 0.02 * number}
        fake.say(row)
        watch.look(5)
    assert told(fake.run) == [("overfit", False), ("plateau", False)]


@pytest.mark.behaviour("model-whose-own-word")
def test_an_exploit_is_told_once_with_its_end(fake: FakeRun) -> None:
    watch = Watchdog(fake.run, fake.attempt, proxies={"imagined": "played"})
    played = [5.0, 9, 7.1, 6.8, 6.1, 5.2, 4.9, 4.2, 9.5]
    for number, value in enumerate(played, 1):
        made = epoch(number, score=value)
        fake.say(msgspec.structs.replace(made, validation={"imagined": float(number), "played": value}))
        watch.look(5)
    assert told(fake.run) == [("exploit", False), ("exploit", True)]


def test_losses_of_other_weights_are_no_overfit(fake: FakeRun) -> None:
    """With a head turned up the validation loss is higher from then on, and falls on from there."""
    watch = beside(fake)
    for number in range(1, 25):
        row = epoch(number, score=number / 100, best=False)
        loss = 0.1 + 0.0001 * number if number <= 10 else 0.5 - 0.001 * number
        row.train, row.validation, row.weights = {"loss": 1 / number}, {"loss": loss}, {"a": 1.0 + 4 * (number > 10)}
        fake.say(row)
        watch.look(5)
    assert told(fake.run) == []


def test_a_norm_is_compared_with_those_since_the_last_edit(fake: FakeRun) -> None:
    """Weights turned up a hundredfold make the gradient as much larger; that is what was asked for."""
    watch = beside(fake)
    log_steps(fake, 0, 300)
    edit = cmd.SetLossWeights(attempt=1, weights={"a": 100.0})
    fake.say(ev.CommandAnswer(command=edit, state="applied", step=300))
    log_steps(fake, 300, 30, norm=100.0)
    watch.look(5)
    assert told(fake.run) == []
    log_steps(fake, 330, 200, norm=100.0)
    log_steps(fake, 530, 30, norm=1500.0)
    watch.look(5)
    assert told(fake.run) == [("gradient", False)]


@pytest.mark.behaviour("goes-wrong-training-s")
def test_steps_disk_and_budget_are_told_once_with_their_ends(fake: FakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    free, spent = [10**12], [8.0]
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free[0]))
    watch = beside(fake, spent=lambda: spent[0])
    fake.say(ev.Checkpoint(step=0, epoch=0, files=["last.pt"], size=10**9, seconds=1.0))
    log_steps(fake, 0, 300)
    watch.look(5)
    watch.look(5)
    assert told(fake.run) == []
    free[0], spent[0] = 10**9, 9.5
    log_steps(fake, 300, 30, norm=50.0)
    for _ in range(3):
        watch.look(5)
    assert sorted(told(fake.run)) == [("budget", False), ("disk", False), ("gradient", False)]
    free[0] = int(1.49 * (2 * 10**9 + 64 * 10**6))  # enough, and not half as much more
    watch.look(5)
    assert len(told(fake.run)) == 3
    free[0] = 10**12
    log_steps(fake, 330, 300, wait=0.4)
    for _ in range(3):
        watch.look(5)
    assert sorted(told(fake.run)[3:]) == [("data-wait", False), ("disk", True), ("gradient", True)]


def test_another_attempt_is_watched_again_and_what_it_superseded_counts_no_more(fake: FakeRun) -> None:
    fake.epochs(*range(1, 31), best=1, score=0.5)
    beside(fake).look(5)
    assert told(fake.run) == [("plateau", False)]
    reader = RunReader(fake.run)
    reader.poll()
    assert list(reader.history.standing) == ["plateau"]
    fake.begin().started(resumed_step=10 * STEPS_PER_EPOCH, epochs=200)
    reader.poll()
    assert not reader.history.standing
    watch = beside(fake)
    watch.look(5)
    fake.epochs(*range(11, 19), score=0.4)
    watch.look(5)
    assert told(fake.run) == [("plateau", False)]


def test_what_cannot_be_written_harms_nothing_and_is_told_when_it_can(
    fake: FakeRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.epochs(*range(1, 31), best=1, score=0.5)
    watch = beside(fake)
    asked: list[int] = []

    def full(*anything: object) -> None:
        asked.append(1)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(watchdog, "SECONDS", 0.01)
    with monkeypatch.context() as patch:
        patch.setattr(watch._events, "write", full)
        watch.start()
        wait_for("it to have tried twice", lambda: len(asked) > 1)
    wait_for("the alert", lambda: told(fake.run))
    watch.stop()
    assert not watch.is_alive()
    assert told(fake.run) == [("plateau", False)]
    assert capsys.readouterr().err.count("watchdog is not running") == 1


# -- posting ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An address and what came to it; it answers the first with an error, which is nobody's business."""
    monkeypatch.setattr(notify, "SECONDS", PATIENCE)
    monkeypatch.setenv("no_proxy", "*")  # a proxy of whoever runs the tests does not lead to this process
    came: list[dict[str, Any]] = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(500)
            self.end_headers()

        def log_message(self, *anything: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/secret", came
    server.shutdown()
    thread.join()


def choose(tmp_path: Path, notify: str) -> None:
    path = tmp_path / "config" / "cockpit" / "settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"theme": "cockpit-light", "notify": notify}))


def test_each_alert_is_posted_once_also_the_engines_own(
    fake: FakeRun, tmp_path: Path, posted: tuple[str, list[dict[str, Any]]], capfd: pytest.CaptureFixture[str]
) -> None:
    address, came = posted
    watch = beside(fake)
    fake.say(ev.Alert(code="nonfinite", level="error", text="step 3 was skipped", step=3))
    watch.look(5)  # nothing chosen yet
    choose(tmp_path, address)
    fake.epochs(*range(1, 31), best=1, score=0.5)
    fake.say(
        ev.Alert(code="checkpoint-failed", level="error", text="no checkpoint", step=9),
        ev.Alert(code="stage", level="info", text="stage b begins"),
    )
    for _ in range(3):
        watch.look(5)
    text = "no better score than 0.5 since epoch 1"
    assert came == [
        {"text": f"{fake.id}: no checkpoint", "run": fake.id, "code": "checkpoint-failed", "level": "error", "step": 9},
        {"text": f"{fake.id}: {text}", "run": fake.id, "code": "plateau", "level": "warning", "step": 300},
    ]
    for elsewhere in ("http://127.0.0.1:1/closed", "https://", "http://[", "bell", "ftp://x"):
        choose(tmp_path, elsewhere)
        fake.say(ev.Alert(code="checkpoint-failed", level="error", text="no checkpoint", step=9))
        watch.look(5)
    assert len(came) == 2
    assert "secret" not in "".join(capfd.readouterr())
    assert not any("secret" in file.read_text(errors="replace") for file in fake.run.path.rglob("*") if file.is_file())


def test_a_failed_end_is_posted_by_the_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, posted: tuple[str, list[dict[str, Any]]]
) -> None:
    address, came = posted
    (tmp_path / "engine_fails.py").write_text("print('no such treasure'); raise SystemExit(1)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    choose(tmp_path, address)
    run = create_run("toy", "{}", kind="training", engine="engine_fails", title="test")
    subprocess.run(
        [sys.executable, "-P", "-c", SUPERVISE, str(run.path)], start_new_session=True, timeout=120, check=False
    )
    assert [(one["code"], one["text"]) for one in came] == [("failed", f"{run.path.name}: failed: no such treasure")]


def test_a_failed_script_posts_its_end_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, posted: tuple[str, list[dict[str, Any]]]
) -> None:
    address, came = posted
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    choose(tmp_path, address)
    report = Reporter("theirs")
    report.log(step=2, loss=1.0)
    report.log(step=3, loss=float("nan"))  # not yet written when it ends
    report.close(failed="ValueError: no more")
    assert [(one["code"], one["step"], one["text"]) for one in came] == [
        ("nonfinite", 3, f"{report.path.name}: step 3: loss is nan"),
        ("failed", 3, f"{report.path.name}: failed: exit code 1 after step 3: ValueError: no more"),
    ]


@pytest.mark.behaviour("run-hangs-while-process")
def test_a_frozen_machine_is_no_stall(fake: FakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long gap between two looks only as much counts as a busy machine leaves."""
    passed: list[float] = []
    watch = beside(fake)
    monkeypatch.setattr(watchdog, "SECONDS", 0.01)
    monkeypatch.setattr(watch, "look", passed.append)
    clock = iter([0.0, 0.01, 500.0, *(500 + n / 100 for n in range(1, 10_000))])
    tick = time.perf_counter
    monkeypatch.setattr(time, "monotonic", lambda: next(clock) if threading.current_thread() is watch else tick())
    watch.start()
    wait_for("it to have looked", lambda: len(passed) > 3)
    watch.stop()
    assert max(passed) == 0.02
