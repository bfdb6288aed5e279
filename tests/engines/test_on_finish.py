"""`cost.on_finish`, with real supervisors: it runs when the machine is done, once, told before and after."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engines.basics import yaml12
from engines.basics.errors import DataError, UserError
from engines.basics.lock import lock_holder
from engines.contract import on_finish
from engines.contract.config import check_config
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.state import RunReader
from engines.runs.store import create_run
from engines.supervise import HEARD
from engines.supervisor import idle
from tests.engines.conftest import alive, wait_for

ENGINE = """
import os, sys, time
from pathlib import Path
from engines.contract.events import Ended, EventWriter, RunStarted
run, attempt = Path(sys.argv[sys.argv.index("--run-dir") + 1]), int(sys.argv[sys.argv.index("--attempt") + 1])
ends, begins = run.name.split("-")[:2]
writer = EventWriter(run / "events.jsonl", attempt)
if begins == "trains" or (begins == "once" and attempt == 1):
    writer.write(RunStarted(project="toy", device="cpu", epochs=1, steps_per_epoch=1, columns=[], stages=[]))
while not (Path(os.environ["GO"]) / run.name).exists(): time.sleep(0.01)
writer.write(Ended(reason=ends, step=1))
sys.exit({"finished": 0, "stopped": 3, "failed": 1}[ends])
"""
"""Ends as the run's name says, when it may, with or without having trained."""
HANGS = """
import signal, sys
from engines.contract import events as ev
from engines.contract.rundir import RunDirectory
signal.signal(signal.SIGTERM, signal.SIG_IGN)
say = ev.EventWriter(RunDirectory(__import__("pathlib").Path(sys.argv[2])).events, 1).write
say(ev.RunStarted(project="toy", device="cpu", epochs=1, steps_per_epoch=1, columns=[], stages=[]))
say(ev.Phase(phase="training"))
while True: signal.pause()
"""
TELLS = 'echo "$COCKPIT_RUN $COCKPIT_STATE" >> "$GO/ran"; echo done'


class Machine:
    """Runs on a machine of their own: no others are seen from it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[RunDirectory] = []

    def prepare(
        self, name: str, command: on_finish.Command | None = TELLS, *, queue: bool = False, restarts: int = 0,
        **cost: object,
    ) -> RunDirectory:  # fmt: skip
        where = {"queue": queue, "device": "cpu", "restarts": restarts}
        config = yaml12.write({"cost": {"on_finish": command, **cost}, "launch": where})
        run = create_run("toy", config, kind="training", engine="ends", title="", path=self.folder / "runs" / name)
        self.made.append(run)
        return run

    def start(
        self, name: str, command: on_finish.Command | None = TELLS, *, queue: bool = False, **cost: Any
    ) -> RunDirectory:
        run = self.prepare(name, command, queue=queue, **cost)
        launch.start(run)
        return run

    def end(self, run: RunDirectory) -> None:
        """Let it end, and its supervisor too."""
        attempt = run.newest_attempt()
        assert attempt is not None
        (self.folder / run.path.name).touch()
        wait_for("its supervisor to leave", lambda: not alive(attempt.supervisor.pid))

    def ran(self) -> list[str]:
        file = self.folder / "ran"
        return file.read_text().splitlines() if file.exists() else []


def told(run: RunDirectory) -> list[tuple[str, str]]:
    reader = RunReader(run)
    reader.poll()
    return [(alert.level, alert.text) for alert in reader.history.alerts if alert.code == "on-finish"]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    (tmp_path / "ends.py").write_text(ENGINE)
    for name, folder in {"GO": "", "COCKPIT_RUNS": "runs", "COCKPIT_QUEUE": "queues"}.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    made = Machine(tmp_path)
    yield made
    for run in made.made:
        if (holder := lock_holder(run.lock)) is not None:
            os.kill(holder, signal.SIGQUIT)


@pytest.mark.behaviour("command-stop-machine-end")
def test_after_which_ends_it_runs(machine: Machine) -> None:
    """Also when it failed unattended; not when a person is there: after a stop, or a start that failed at once."""
    runs = {}
    for name in ("finished-trains", "failed-trains", "failed-loads", "failed-loads-queued", "stopped-trains"):
        runs[name] = machine.start(name, queue=name.endswith("queued"))
        machine.end(runs[name])
    wanted = ["finished-trains finished", "failed-trains failed", "failed-loads-queued failed"]
    assert machine.ran() == [f"{machine.folder / 'runs'}/{one}" for one in wanted]
    finished = runs["finished-trains"]
    (_, before), (_, after) = told(finished)
    assert before == f"cost.on_finish runs: {TELLS}"
    assert after.startswith("cost.on_finish has run in ")
    assert (finished.path / "logs" / "on_finish.log").read_text() == "done\n"
    assert told(runs["failed-loads"]) == told(runs["stopped-trains"]) == []


@pytest.mark.behaviour("command-stop-machine-end")
def test_it_runs_after_a_restart_that_fails_at_once(machine: Machine) -> None:
    run = machine.prepare("failed-once", restarts=1)
    run.last.touch()
    launch.start(run)
    machine.end(run)
    assert run.attempt_numbers() == [1, 2]
    assert machine.ran() == [f"{run.path} failed"]


@pytest.mark.behaviour("command-stop-machine-end")
def test_it_waits_for_no_one_and_is_left_to_the_run_that_ends_last(machine: Machine) -> None:
    first, second = machine.start("finished-trains-first"), machine.start("finished-trains-second")
    machine.end(first)
    assert machine.ran() == []
    ((level, text),) = told(first)
    assert level == "info"
    assert text == ("cost.on_finish is left to the last run: finished-trains-second still runs on this machine")
    waiting = machine.start("finished-trains-waiting", queue=True)
    machine.end(second)
    assert machine.ran() == []
    machine.end(waiting)
    assert machine.ran() == [f"{waiting.path} finished"]


@pytest.mark.behaviour("command-stop-machine-end")
def test_what_goes_wrong_in_it_is_an_alert_and_changes_no_end(machine: Machine) -> None:
    faulty: dict[str, on_finish.Command] = {
        "finished-trains-a": "echo no such pod >&2; exit 7",
        "finished-trains-b": ["no-such-command", "--now"],
    }
    for name, command in faulty.items():
        machine.end(machine.start(name, command))
    one, other = machine.made
    assert told(one)[-1] == (
        "error", "cost.on_finish failed with exit code 7: no such pod (more in logs/on_finish.log)"
    )  # fmt: skip
    level, text = told(other)[-1]
    assert level == "error"
    assert text.startswith("cost.on_finish did not run: [Errno 2] No such file or directory: 'no-such-command'")
    for run in machine.made:
        assert RunReader(run).status().state == "finished"


def test_one_that_takes_too_long_is_ended_with_all_it_has_started(machine: Machine) -> None:
    run = machine.prepare("finished-trains", "sleep 1000 & echo $! > $GO/child; exec sleep 1000")
    (machine.folder / run.path.name).touch()
    soon = (
        "import sys; from engines import supervise; from engines.supervisor import on_finish; "
        "on_finish.SECONDS = 0.5; sys.exit(supervise.main())"
    )
    subprocess.run([sys.executable, "-P", "-c", soon, str(run.path)], check=True, start_new_session=True, timeout=60)
    level, text = told(run)[-1]
    assert (level, text) == ("error", "cost.on_finish was killed: it took more than 0 s")
    assert not Path(f"/proc/{(machine.folder / 'child').read_text().strip()}").exists()


@pytest.mark.parametrize("wrong", ["7", "''", "[]", "[a, 3]", "{a: b}"])
def test_what_is_no_command_is_a_fault_of_the_config(wrong: str) -> None:
    tree = {"project": "controls", "data": {"path": "/data"}}
    with pytest.raises(UserError, match=r"--set cost.on_finish=.*: cost.on_finish: expected a command"):
        check_config(tree, "config", {}, [f"cost.on_finish={wrong}"])
    assert on_finish.command_in({"cost": {"on_finish": yaml12.read_value(wrong)}}) is None


def test_it_is_told_in_words_before_anything_starts() -> None:
    for command, shown in {
        "runpodctl stop pod 'a b'": "runpodctl stop pod 'a b'",
        ("echo", "a b"): "echo 'a b'",
    }.items():
        tree = {
            "project": "controls",
            "data": {"path": "/data"},
            "cost": {"on_finish": command if isinstance(command, str) else list(command)},
        }
        settings = check_config(tree, "config", {}, ()).settings
        assert on_finish.sentences(settings.model_dump()) == [
            f"when the run ends and nothing else runs here, this runs: {shown}"
        ]
    assert on_finish.sentences({"cost": {"on_finish": None}}) == on_finish.sentences(None) == []


@pytest.mark.behaviour("commands-on-error-and-idle")
def test_a_failure_has_a_command_of_its_own(machine: Machine) -> None:
    command = 'echo "error $COCKPIT_STATE" >> "$GO/ran"'
    for name in ("failed-trains", "finished-trains", "failed-loads"):
        machine.end(machine.start(name, "echo finish >> $GO/ran", on_error=command))
    assert machine.ran() == ["error failed", "finish"]
    assert told(machine.made[0])[0] == ("info", f"cost.on_error runs: {command}")


@pytest.mark.behaviour("copy-before-the-machine-stops")
def test_nothing_runs_before_the_copy_has_succeeded(machine: Machine) -> None:
    run = machine.start("finished-trains-a", copy_first='cp -r "$COCKPIT_RUN" "$GO/copy"; echo copied >> $GO/ran')
    machine.end(run)
    assert machine.ran() == ["copied", f"{run.path} finished"]
    assert (machine.folder / "copy" / "run.json").read_bytes() == run.info_file.read_bytes()
    refused = machine.start("finished-trains-b", copy_first="echo no space left; exit 3")
    machine.end(refused)
    assert machine.ran()[2:] == []
    assert told(refused)[1:] == [
        ("error", "cost.copy_first failed with exit code 3: no space left (more in logs/copy_first.log)"),
        ("error", "cost.on_finish does not run, since cost.copy_first did not succeed"),
    ]


@pytest.mark.behaviour("commands-on-error-and-idle")
def test_an_idle_machine_runs_its_command_after_a_stop_too(machine: Machine) -> None:
    run = machine.prepare("stopped-trains", None, on_idle=TELLS, idle_minutes=0.001)
    (machine.folder / run.path.name).touch()
    supervise(run, "from engines.supervisor import idle; idle.last_input = lambda: 0.0")
    assert machine.ran() == [f"{run.path} stopped"]
    assert [text.split(":")[0] for _, text in told(run)][:2] == [
        "cost.on_idle waits for 0.001 minutes without a run and without a key pressed", "cost.on_idle runs"
    ]  # fmt: skip


def test_a_wait_for_idle_ends_where_something_runs_or_is_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert idle.wait_until_idle(60.0, lambda: "amber", HEARD) == "amber runs on this machine"
    (tmp_path / "3").touch()
    (tmp_path / "ptmx").touch()
    os.utime(tmp_path / "3", (1000.0, 2000.0))
    os.utime(tmp_path / "ptmx", (9000.0, 9000.0))
    assert idle.last_input(tmp_path) == 1000.0
    assert idle.last_input(tmp_path / "none") == 0.0
    now = [100.0]
    typed = iter((99.0, 99.0, 125.0, *[125.0] * 9))
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(idle, "last_input", lambda: next(typed))
    waited: list[float] = []

    def wait(heard: object, seconds: float) -> None:
        waited.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(signal, "sigtimedwait", wait)
    assert idle.wait_until_idle(30.0, lambda: "", HEARD) == ""
    assert now[0] == 155.0  # half a minute after the last key, not after the end


@pytest.mark.behaviour("command-on-stall")
def test_a_run_that_hangs_is_stopped_and_its_command_runs(machine: Machine) -> None:
    (machine.folder / "ends.py").write_text(HANGS)
    run = machine.prepare("finished-trains", None, on_stall=TELLS)
    supervise(
        run,
        "from engines.supervisor import watchdog; from engines.runs import stall; watchdog.SECONDS = 0.05; "
        "stall.LEAST_SECONDS['training'] = stall.UNKNOWN_SECONDS = 0.2; supervise.BUDGET_GRACE = 0.3",
    )
    status = RunReader(run).status()
    assert status.state == "failed"
    assert "no sign of life for" in status.detail
    ends = "killed, progress since the last checkpoint is lost, as cost.on_stall asks (killed by SIGKILL)"
    assert status.detail.endswith(ends)
    assert machine.ran() == [f"{run.path} failed"]


def test_the_word_for_the_pod_is_what_runpodctl_does(tmp_path: Path) -> None:
    program = tmp_path / "runpodctl"
    environment = {"PATH": str(tmp_path), "RUNPOD_POD_ID": "abc123"}
    with pytest.raises(DataError, match="runpodctl is not installed"):
        on_finish.resolved("stop-pod", environment)
    program.touch(0o755)
    assert on_finish.resolved("stop-pod", environment) == [str(program), "stop", "pod", "abc123"]
    assert on_finish.resolved(" remove-pod ", environment)[1] == "remove"
    assert on_finish.resolved("stop-pod now", environment) == ["/bin/sh", "-c", "stop-pod now"]
    (first := tmp_path / "environ").write_bytes(b"PATH=/bin\0RUNPOD_POD_ID=def456\0TERM=x")
    assert on_finish.pod_id({}, first) == "def456"
    assert on_finish.pod_id({}, tmp_path / "none") == ""


def test_every_command_is_told_before_a_start() -> None:
    cost = {"on_error": "a", "on_stall": "b", "on_idle": ["c", "d e"], "idle_minutes": 7, "copy_first": "rsync"}
    assert on_finish.sentences({"cost": cost}) == [
        "when the run fails and nothing else runs here, this runs: a",
        "when the run hangs, it is stopped, and if nothing else runs here, this runs: b",
        "7 minutes after the run has ended, if nothing runs here and nobody types, this runs: c 'd e'",
        "before that, this must succeed: rsync",
    ]
    assert on_finish.sentences({"cost": {"copy_first": "rsync"}}) == []


def supervise(run: RunDirectory, beforehand: str) -> None:
    """Its supervisor to its end, with times that suit a test."""
    code = f"import sys; from engines import supervise; {beforehand}; sys.exit(supervise.main())"
    subprocess.run([sys.executable, "-P", "-c", code, str(run.path)], check=False, start_new_session=True, timeout=60)
