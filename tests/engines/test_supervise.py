"""The supervisor: how it ended is on record, whatever ended it, and nothing is left behind."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import psutil
import pytest

from engines.basics import files
from engines.basics.errors import DataError
from engines.basics.jsonl import RecordFollower
from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.contract.config import check_config, load_config
from engines.contract.events import Phase
from engines.contract.rundir import Attempt, End, ProcessMark, RunDirectory
from engines.runs import launch
from engines.runs.resumption import Resumption
from engines.runs.state import RunReader
from engines.runs.store import create_run
from engines.supervise import Supervisor
from tests.engines.conftest import LiveRun, alive, end_of, engine_of, wait_for

ENGINES = {
    "sleeps": "import time\nwhile True: time.sleep(0.05)",
    "raises": "raise SystemExit(7)",
    "saves": (
        "import signal, sys, time\n"
        "from pathlib import Path\n"
        "from engines.contract.events import Ended, EventWriter\n"
        "run = Path(sys.argv[sys.argv.index('--run-dir') + 1])\n"
        "def leave(number, frame):\n"
        "    EventWriter(run / 'events.jsonl', 1).write(Ended(reason='stopped', step=0))\n"
        "    sys.exit(3)\n"
        "signal.signal(signal.SIGTERM, leave)\n"
        "while True: time.sleep(0.05)\n"
    ),
    "floods": "for _ in range(100_000): print('x' * 99)",
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


def kill(run: RunDirectory) -> None:
    """All of it, when its engine has started."""
    engine_of(run)
    supervisor = lock_holder(run.lock)
    assert supervisor is not None
    os.kill(supervisor, signal.SIGQUIT)
    end_of(run)


@pytest.mark.behaviour("engine-session-own-terminal")
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


@pytest.mark.behaviour("killed-run-tells-signal")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_killed_engine_is_failed_with_the_signals_name(
    supervised: Callable[..., RunDirectory], number: signal.Signals
) -> None:
    run = supervised("sleeps")
    os.kill(engine_of(run), number)
    assert end_of(run) == ("failed", f"killed by {number.name} after step 0")


@pytest.mark.behaviour("state-shown-process-exit")
def test_exit_code_and_last_log_line_are_told(supervised: Callable[..., RunDirectory]) -> None:
    assert end_of(supervised("raises")) == ("failed", "exit code 7 after step 0")
    assert end_of(supervised("prints")) == ("failed", "no such treasure")


@pytest.mark.behaviour("frozen-cockpit-holds-nothing")
def test_ten_megabytes_that_nobody_reads_hold_nothing_up(supervised: Callable[..., RunDirectory]) -> None:
    """Output goes to a file: a pipe would be full after 64 KiB."""
    run = supervised("floods")
    assert end_of(run)[0] == "failed"  # it says no word of its own, but it came to its end
    ended = run.attempt(1).ended
    assert ended is not None
    assert ended.exit_code == 0
    assert run.stdout.stat().st_size == 10_000_000


@pytest.mark.parametrize("config", ["", "[]", "cost: 7", "cost: {usd_per_hour: x, budget_usd: []}", "a: [\n"])
def test_a_damaged_config_is_left_to_the_engine_to_name(supervised: Callable[..., RunDirectory], config: str) -> None:
    assert end_of(supervised("prints", config)) == ("failed", "no such treasure")


def test_an_engine_that_cannot_be_started_is_on_record(
    supervised: Callable[..., RunDirectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = supervised("raises")
    end_of(run)
    run.stdout.unlink()
    run.stdout.mkdir()
    with contextlib.suppress(DataError):  # whoever starts it may look before it has failed or after
        launch.start(run)
    state, detail = end_of(run)
    assert state == "failed"
    assert detail.startswith("the engine could not be started: [Errno 21] Is a directory")


def test_a_run_killed_before_its_first_word_can_be_started_again(supervised: Callable[..., RunDirectory]) -> None:
    """Neither events nor an end, and a record that was damaged: none of it keeps the next attempt from starting."""
    run = supervised("sleeps")
    for attempt in (1, 2):
        engine_of(run)
        supervisor = lock_holder(run.lock)
        assert supervisor is not None
        os.kill(supervisor, signal.SIGKILL)
        assert end_of(run)[0] == "lost"
        assert RunReader(run).poll() == []
        (run.attempts / f"{attempt}.json").write_text("damaged")
        assert end_of(run)[0] == "lost"
        assert launch.start(run) == attempt + 1


@pytest.mark.behaviour("two-who-resume-run")
def test_of_two_who_resume_at_once_one_does_and_nothing_of_the_other_is_in_force(
    supervised: Callable[..., RunDirectory],
) -> None:
    """Planned while the run had ended, by two cockpits; a third one starts when the winner has ended too."""
    config = check_config({"project": "controls", "data": {"path": "/data"}}, "config", {}, ()).dump()
    run = supervised("sleeps", config)
    kill(run)
    wanted = {price: [f"cost.usd_per_hour={price}", f"training.patience={price}"] for price in (1, 2, 3)}
    plans = {price: launch.prepare_resume(run, settings)[0] for price, settings in wanted.items()}

    def start(price: int) -> str:
        try:
            return str(launch.start(run, plans[price]))
        except DataError as error:
            return str(error)

    with ThreadPoolExecutor() as cockpits:
        answers = dict(zip((1, 2), cockpits.map(start, (1, 2)), strict=True))
    (winner,) = [price for price, answer in answers.items() if answer == "2"]
    kill(run)
    answers[3] = start(3)
    del answers[winner]
    for answer in answers.values():
        assert f"{run.path.name} was resumed by another command meanwhile, so this resume was dropped: " in answer
        assert "\n" not in answer
    assert run.attempt_numbers() == [1, 2]
    assert {attempt: run.attempt(attempt).usd_per_hour for attempt in (1, 2)} == {1: 0, 2: winner}
    for recorded in (run.config, run.recorded_config):
        assert load_config(recorded).settings.cost.usd_per_hour == winner
    (edit,) = RecordFollower(run.commands, cmd.decoder).poll()
    assert isinstance(edit, cmd.SetPatience)
    assert (edit.attempt, edit.patience) == (2, winner)


def test_a_resume_that_cannot_be_put_on_record_fails_and_leaves_the_next_one_nothing(
    supervised: Callable[..., RunDirectory],
) -> None:
    config = check_config({"project": "controls", "data": {"path": "/data"}}, "config", {}, ()).dump()
    run = supervised("sleeps", config)
    kill(run)
    changes, _ = launch.prepare_resume(run, ["training.patience=9"])
    run.commands.mkdir()
    reason = f"{run.path} cannot be written: Is a directory; free some space, then resume"
    with contextlib.suppress(DataError):  # whoever starts it may look before it has failed or after
        launch.start(run, changes)
    assert end_of(run) == ("failed", reason)
    assert run.attempt(2).engine is None
    run.commands.rmdir()
    assert launch.prepare_resume(run)[0] == Resumption(attempt=3, edits=[])


def test_a_budget_that_is_spent_starts_nothing(supervised: Callable[..., RunDirectory]) -> None:
    run = supervised("sleeps", "cost: {usd_per_hour: 3600, budget_usd: 0.001}")
    assert end_of(run) == ("out-of-budget", "the budget of $0.001 is spent")
    attempt = launch.start(run)
    assert end_of(run) == ("out-of-budget", "the budget of $0.001 is spent")
    assert run.attempt(attempt).engine is None


def test_a_lost_attempt_costs_until_its_own_last_event(tmp_path: Path) -> None:
    """Two hours at $1, the first lost after half an hour: what came later is not charged to it again."""
    run = create_run(
        "toy", "cost: {usd_per_hour: 1, budget_usd: 4}", kind="training", engine="x", title="", path=tmp_path
    )
    marks = ProcessMark(1, 0.0)
    run.write_attempt(Attempt(number=1, started=0, supervisor=marks, usd_per_hour=1))
    end = End(reason="stopped", time=3600 * 10)
    run.write_attempt(Attempt(number=2, started=3600 * 9, supervisor=marks, usd_per_hour=1, ended=end))
    events = [Phase(time=1800, attempt=1, phase="training"), Phase(time=3600 * 9.5, attempt=2, phase="training")]
    run.events.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    assert Supervisor(run).budget.seconds_left == pytest.approx((4 - 1.5) * 3600)


def test_the_end_is_recorded_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Full as long as the reserve lies there."""
    run = create_run("toy", "{}", kind="training", engine="x", title="", path=tmp_path)
    supervisor = Supervisor(run)
    reserve = run.attempts / ".reserve.tmp"
    reserve.write_bytes(b"0" * 100)
    real = files.replace_bytes

    def full(path: Path, content: bytes) -> None:
        if reserve.exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, content)

    monkeypatch.setattr(files, "replace_bytes", full)
    end = End(reason="failed", time=1, exit_code=1)
    supervisor._record_end(Attempt(number=1, started=0, supervisor=ProcessMark(1, 0.0), ended=end))
    recorded = run.attempt(1).ended
    assert recorded is not None
    assert recorded.error == f"{run.path} cannot be written: No space left on device; free some space, then resume"
    assert not reserve.exists()


@pytest.mark.behaviour("engine-session-own-terminal")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_hang_up_is_nothing_and_sigterm_goes_to_the_engine(
    supervised: Callable[..., RunDirectory], number: signal.Signals
) -> None:
    run = supervised("sleeps")
    engine, supervisor = engine_of(run), lock_holder(run.lock)
    assert supervisor is not None
    os.kill(supervisor, signal.SIGHUP)
    os.kill(supervisor, number)
    assert end_of(run) == ("stopped", "ended before it received the request to save")
    assert not alive(engine)


def test_kill_on_request_counts_as_stopped(supervised: Callable[..., RunDirectory]) -> None:
    run = supervised("sleeps")
    engine_of(run)
    supervisor = lock_holder(run.lock)
    assert supervisor is not None
    os.kill(supervisor, signal.SIGQUIT)
    assert end_of(run) == ("stopped", "killed on request; progress since the last checkpoint is lost")


@pytest.mark.behaviour("nothing-engine-started-outlives")
def test_the_engine_dies_with_its_supervisor(supervised: Callable[..., RunDirectory]) -> None:
    run = supervised("sleeps")
    engine, supervisor = engine_of(run), lock_holder(run.lock)
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    wait_for("the engine to be gone", lambda: not alive(engine))
    state, detail = end_of(run)
    assert state == "lost"
    assert "no end recorded" in detail


@pytest.mark.behaviour("nothing-engine-started-outlives")
def test_orphans_are_ended_even_from_sessions_of_their_own(
    supervised: Callable[..., RunDirectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = supervised("leaves_orphans")
    assert end_of(run)[0] == "failed"  # it exits with 0 but never said that it finished
    orphans = [int(line) for line in run.stdout.read_text().split()]
    assert len(orphans) == 2
    assert not any(alive(pid) for pid in orphans)


def test_a_second_engine_is_refused_and_the_first_untouched(supervised: Callable[..., RunDirectory]) -> None:
    run = supervised("sleeps")
    engine = engine_of(run)
    with pytest.raises(DataError, match="already has a live engine"):
        launch.start(run)
    assert alive(engine)
    assert run.attempt_numbers() == [1]


def test_a_spent_budget_stops_the_run(supervised: Callable[..., RunDirectory]) -> None:
    """A dollar a second, one and a half to spend: asked to stop as by a person, and why is on record."""
    run = supervised("saves", "cost: {usd_per_hour: 3600, budget_usd: 1.5}")
    assert end_of(run) == ("out-of-budget", "the budget of $1.5 is spent")


@pytest.mark.behaviour("hangs-when-budget-spent")
def test_an_engine_that_hangs_costs_no_more_than_its_budget_and_a_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deaf to being asked, as one that waits for another GPU."""
    deaf = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(0.05)\n"
    (tmp_path / "engine_deaf.py").write_text(deaf)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    config = "cost: {usd_per_hour: 3600, budget_usd: 1.5}"
    run = create_run("toy", config, kind="training", engine="engine_deaf", title="", path=tmp_path / "run")
    soon = "import sys; from engines import supervise; supervise.BUDGET_GRACE = 0.3; sys.exit(supervise.main())"
    command = [sys.executable, "-P", "-c", soon, str(run.path)]
    subprocess.run(command, check=False, start_new_session=True, timeout=60)
    spent = "the budget of $1.5 is spent; killed, progress since the last checkpoint is lost"
    assert end_of(run) == ("out-of-budget", spent)


@pytest.mark.behaviour("save-stop-asked-acknowledged")
def test_a_real_engine_saves_on_a_signal_and_leaves(new_run: Callable[..., LiveRun]) -> None:
    live = new_run("training.epochs=100000", "training.patience=100000")
    live.start()
    live.wait_state("running")
    supervisor = lock_holder(live.run.lock)
    assert supervisor is not None
    os.kill(supervisor, signal.SIGTERM)
    assert live.wait_end() == "stopped"
    assert live.run.last.is_file()
    assert live.run.attempt(1).ended is not None
    assert live.run.attempt(1).ended.exit_code == 3  # type: ignore[union-attr]


def test_two_who_start_at_once_start_one_engine(
    supervised: Callable[..., RunDirectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slower launcher looked before the faster one's attempt was there, and must not take it for its own."""
    run = supervised("sleeps")
    engine = engine_of(run)
    monkeypatch.setattr(RunDirectory, "attempt_numbers", _blind_once(RunDirectory.attempt_numbers))
    with pytest.raises(DataError, match="already has a live engine"):
        launch.start(run)
    assert alive(engine)


def _blind_once(real: Callable[[RunDirectory], list[int]]) -> Callable[[RunDirectory], list[int]]:
    calls: list[RunDirectory] = []

    def numbers(run: RunDirectory) -> list[int]:
        calls.append(run)
        return [] if len(calls) == 1 else real(run)

    return numbers


def test_what_does_not_start_in_time_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = create_run("toy", "{}", kind="training", engine="x", title="", path=tmp_path / "run")
    monkeypatch.setattr(launch, "START_SECONDS", 0.0)
    with pytest.raises(DataError, match="did not start within 0 s and was killed"):
        launch.start(run)
    assert lock_holder(run.lock) is None
    assert run.attempt_numbers() == []
