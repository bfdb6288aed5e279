"""The supervisor: how it ended is on record, whatever ended it, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from engines.contract import commands as cmd
from engines.contract import launch
from engines.contract.errors import DataError
from engines.contract.lock import lock_holder
from engines.contract.rundir import RunDirectory, create_run
from engines.contract.state import RunReader
from tests.engines.conftest import LiveRun, wait_for

ENGINES = {
    "sleeps": "import time\nwhile True: time.sleep(0.05)",
    "raises": "raise SystemExit(7)",
    "prints": "print('no such treasure'); raise SystemExit(1)",
    "leaves_orphans": (
        "import os, subprocess, sys, time\n"
        "script = 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)'\n"
        "for new_session in (False, True):\n"
        "    orphan = subprocess.Popen([sys.executable, '-c', script], start_new_session=new_session)\n"
        "    print(orphan.pid, flush=True)\n"
    ),
}


@pytest.fixture
def supervised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., RunDirectory]]:
    """Starts a run whose engine is a few lines of Python."""
    modules = tmp_path / "modules"
    modules.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(modules))
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    made: list[RunDirectory] = []

    def make(engine: str, config: str = "{}") -> RunDirectory:
        (modules / f"engine_{engine}.py").write_text(ENGINES[engine])
        made.append(create_run("toy", config, kind="training", engine=f"engine_{engine}", title="test"))
        launch.start(made[-1])
        return made[-1]

    yield make
    for run in made:
        if (holder := lock_holder(run.lock)) is not None:
            os.kill(holder, signal.SIGQUIT)


def end_of(run: RunDirectory) -> tuple[str, str]:
    """State and detail once the supervisor is gone."""
    wait_for("the lock to be free", lambda: lock_holder(run.lock) is None)
    status = RunReader(run).status()
    return status.state, status.detail


def engine_of(run: RunDirectory) -> int:
    def started() -> int | None:
        attempt = run.newest_attempt()
        return attempt.engine.pid if attempt and attempt.engine else None

    pid: int = wait_for("the engine to start", started)
    return pid


def test_it_is_a_session_leader_and_the_engine_has_no_terminal(supervised: Callable[..., RunDirectory]) -> None:
    run = supervised("sleeps")
    engine = engine_of(run)
    supervisor = lock_holder(run.lock)
    assert supervisor is not None
    assert os.getsid(supervisor) == supervisor
    assert os.getsid(engine) == supervisor
    assert psutil.Process(engine).terminal() is None
    assert os.readlink(f"/proc/{engine}/fd/0") == "/dev/null"
    assert os.readlink(f"/proc/{engine}/fd/1") == str(run.stdout)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_killed_engine_is_failed_with_the_signals_name(
    supervised: Callable[..., RunDirectory], number: signal.Signals
) -> None:
    run = supervised("sleeps")
    os.kill(engine_of(run), number)
    assert end_of(run) == ("failed", f"killed by {number.name} after step 0")


def test_exit_code_and_last_log_line_are_told(supervised: Callable[..., RunDirectory]) -> None:
    assert end_of(supervised("raises")) == ("failed", "exit code 7 after step 0")
    assert end_of(supervised("prints")) == ("failed", "exit code 1 after step 0: no such treasure")


def test_hang_up_is_nothing_and_sigterm_goes_to_the_engine(supervised: Callable[..., RunDirectory]) -> None:
    run = supervised("sleeps")
    engine, supervisor = engine_of(run), lock_holder(run.lock)
    assert supervisor is not None
    os.kill(supervisor, signal.SIGHUP)
    os.kill(supervisor, signal.SIGTERM)
    assert end_of(run) == ("failed", "killed by SIGTERM after step 0")
    assert not psutil.pid_exists(engine)


def test_kill_on_request_counts_as_stopped(supervised: Callable[..., RunDirectory]) -> None:
    run = supervised("sleeps")
    engine_of(run)
    supervisor = lock_holder(run.lock)
    assert supervisor is not None
    os.kill(supervisor, signal.SIGQUIT)
    assert end_of(run) == ("stopped", "killed on request, not saved since the last checkpoint")


def test_the_engine_dies_with_its_supervisor(supervised: Callable[..., RunDirectory]) -> None:
    run = supervised("sleeps")
    engine, supervisor = engine_of(run), lock_holder(run.lock)
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    wait_for("the engine to be gone", lambda: not psutil.pid_exists(engine))
    state, detail = end_of(run)
    assert state == "lost"
    assert "no end recorded" in detail


def test_orphans_are_ended_even_from_sessions_of_their_own(
    supervised: Callable[..., RunDirectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = supervised("leaves_orphans")
    assert end_of(run)[0] == "failed"  # it exits with 0 but never said that it finished
    orphans = [int(line) for line in run.stdout.read_text().split()]
    assert len(orphans) == 2
    assert not any(psutil.pid_exists(pid) for pid in orphans)


def test_a_second_engine_is_refused_and_the_first_untouched(supervised: Callable[..., RunDirectory]) -> None:
    run = supervised("sleeps")
    engine = engine_of(run)
    with pytest.raises(DataError, match="already has a live engine"):
        launch.start(run)
    assert psutil.pid_exists(engine)
    assert run.attempt_numbers() == [1]


def test_a_spent_budget_stops_the_run(new_run: Callable[..., LiveRun]) -> None:
    """A dollar a second, eight to spend: seconds of work, then saved and stopped."""
    live = new_run("cost.usd_per_hour=3600", "cost.budget_usd=8", "training.epochs=100000", "training.patience=100000")
    live.start()
    assert live.wait_end() == "out-of-budget"
    assert live.run.last.is_file()
    status = live.reader.status()
    assert (status.state, status.detail) == ("out-of-budget", "the budget of $8 is spent")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_real_engine_saves_on_a_signal_and_leaves(new_run: Callable[..., LiveRun], number: signal.Signals) -> None:
    live = new_run("training.epochs=100000", "training.patience=100000")
    live.start()
    live.wait_state("running")
    supervisor = lock_holder(live.run.lock)
    assert supervisor is not None
    os.kill(supervisor, number)
    assert live.wait_end() == "stopped"
    assert live.run.last.is_file()
    assert live.run.attempt(1).ended is not None
    assert live.run.attempt(1).ended.exit_code == 3  # type: ignore[union-attr]


def test_the_foreground_engine_survives_its_terminal(example_process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """`python -m engines.train` killed with SIGKILL: the run goes on without it."""
    example_process.stdout.readline()  # type: ignore[union-attr]
    run = RunDirectory(tmp_path / "run")
    engine = engine_of(run)
    example_process.kill()
    example_process.wait()
    reader = RunReader(run)
    wait_for("an epoch after the foreground is gone", lambda: reader.poll() and len(reader.history.epochs) >= 2)
    assert psutil.pid_exists(engine)
    launch.send(run, cmd.Stop(attempt=1))
    assert end_of(run)[0] == "stopped"


@pytest.fixture
def example_process(new_run: Callable[..., LiveRun], example: object, tmp_path: Path) -> subprocess.Popen[bytes]:
    config = str(example.config)  # type: ignore[attr-defined]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "engines.train", "--config", config, "--run-dir", str(tmp_path / "run"),
         "--set", "training.epochs=100000", "--set", "training.patience=100000", "--set", "launch.threads=1"],
        stdout=subprocess.PIPE,
    )  # fmt: skip
