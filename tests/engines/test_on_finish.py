"""`cost.on_finish`, with real supervisors: it runs when the machine is done, once, told before and after."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.basics import yaml12
from engines.basics.errors import UserError
from engines.basics.lock import lock_holder
from engines.contract import on_finish
from engines.contract.config import check_config
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runs.state import RunReader
from engines.runs.store import create_run
from tests.engines.conftest import alive, wait_for

ENGINE = """
import os, sys, time
from pathlib import Path
from engines.contract.events import Ended, EventWriter, RunStarted
run, attempt = Path(sys.argv[sys.argv.index("--run-dir") + 1]), int(sys.argv[sys.argv.index("--attempt") + 1])
ends, begins = run.name.split("-")[:2]
writer = EventWriter(run / "events.jsonl", attempt)
if begins == "trains":
    writer.write(RunStarted(project="toy", device="cpu", epochs=1, steps_per_epoch=1, columns=[], stages=[]))
while not (Path(os.environ["GO"]) / run.name).exists(): time.sleep(0.01)
writer.write(Ended(reason=ends, step=1))
sys.exit({"finished": 0, "stopped": 3, "failed": 1}[ends])
"""
"""Ends as the run's name says, when it may, with or without having trained."""
TELLS = 'echo "$COCKPIT_RUN $COCKPIT_STATE" >> "$GO/ran"; echo done'


class Machine:
    """Runs on a machine of their own: no others are seen from it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[RunDirectory] = []

    def prepare(self, name: str, command: on_finish.Command | None = TELLS, *, queue: bool = False) -> RunDirectory:
        config = yaml12.write({"cost": {"on_finish": command}, "launch": {"queue": queue, "device": "cpu"}})
        run = create_run("toy", config, kind="training", engine="ends", title="", path=self.folder / "runs" / name)
        self.made.append(run)
        return run

    def start(self, name: str, command: on_finish.Command | None = TELLS, *, queue: bool = False) -> RunDirectory:
        run = self.prepare(name, command, queue=queue)
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
    for name, folder in {"PYTHONPATH": "", "GO": "", "COCKPIT_RUNS": "runs", "COCKPIT_QUEUE": "queues"}.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
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
        assert on_finish.told(settings.model_dump()) == [
            f"when the run ends and nothing else runs here, this runs: {shown}"
        ]
    assert on_finish.told({"cost": {"on_finish": None}}) == on_finish.told(None) == []
