"""The queue of a device, with real supervisors: one run at a time, in order, and no place outlives its holder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.basics.errors import DataError, UserError
from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.contract.rundir import RunDirectory
from engines.host import queue
from engines.runs import launch
from engines.runs.spending import seconds_spent, spans_of
from engines.runs.state import RunReader
from engines.runs.store import create_run
from tests.engines.conftest import wait_for

ENGINE = """
import os, sys, time
run, log = sys.argv[sys.argv.index("--run-dir") + 1], os.environ["QUEUE_TEST"]
def note(what):
    with open(log + "/log", "a") as file:
        file.write(f"{what} {os.path.basename(run)}\\n")
note("begins")
while not os.path.exists(log + "/go"): time.sleep(0.01)
note("ends")
"""
"""Notes when it begins and when it ends, and runs until it may end."""


class Line:
    """Runs on one device, each started when it is made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.runs: dict[str, RunDirectory] = {}

    def start(self, name: str, *, queued: bool = True, device: str = "cpu", kind: str = "training") -> RunDirectory:
        config = f"launch: {{device: '{device}', queue: {str(queued).lower()}}}"
        run = create_run(
            "toy", config, kind=kind, engine="queue_engine", title="", path=self._folder / "runs" / name,  # type: ignore[arg-type]
        )  # fmt: skip
        self.runs[name] = run
        launch.start(run)
        if queued:
            self.wait_state(name, "queued", "starting")
        else:
            self.wait_begun(name)
        return run

    def supervisor(self, name: str) -> int:
        """Its process id, of a run that is alive."""
        holder = lock_holder(self.runs[name].lock)
        assert holder is not None
        return holder

    def status(self, name: str) -> tuple[str, str]:
        status = RunReader(self.runs[name]).status()
        return status.state, status.detail

    def wait_state(self, name: str, *states: str) -> None:
        wait_for(f"{name} to be {' or '.join(states)}", lambda: self.status(name)[0] in states)

    def wait_begun(self, name: str) -> None:
        wait_for(f"the engine of {name}", lambda: f"begins {name}" in self.log())

    def wait_gone(self, *names: str) -> None:
        for name in names:
            lock = self.runs[name].lock
            wait_for(f"{name} to be gone", lambda: lock_holder(lock) is None)  # noqa: B023  (called before the next)

    def go(self) -> None:
        (self._folder / "go").touch()

    def log(self) -> list[str]:
        file = self._folder / "log"
        return file.read_text().splitlines() if file.exists() else []

    def order(self) -> list[tuple[int, str]]:
        return [(place.number, place.run.name) for place in queue.places()]


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    (tmp_path / "queue_engine.py").write_text(ENGINE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("QUEUE_TEST", str(tmp_path))
    monkeypatch.setenv("COCKPIT_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("COCKPIT_QUEUE", str(tmp_path / "queues"))
    made = Line(tmp_path)
    yield made
    for run in made.runs.values():
        if (holder := lock_holder(run.lock)) is not None:
            os.kill(holder, signal.SIGQUIT)


def test_runs_of_one_device_come_one_after_another_in_order(line: Line) -> None:
    for name in ("toy-1-amber", "toy-2-birch", "toy-3-coral"):
        line.start(name)
    line.wait_begun("toy-1-amber")
    assert line.order() == [(0, "toy-1-amber"), (1, "toy-2-birch"), (2, "toy-3-coral")]
    wait_for("its place to be told", lambda: line.status("toy-3-coral") == ("queued", "2nd for cpu, after birch"))
    wait_for("its place to be told", lambda: line.status("toy-2-birch") == ("queued", "1st for cpu, after amber"))
    line.go()
    line.wait_gone(*line.runs)
    assert line.log() == [
        f"{what} {name}" for name in ("toy-1-amber", "toy-2-birch", "toy-3-coral") for what in ("begins", "ends")
    ]
    assert line.order() == []


@pytest.mark.behaviour("stop-heard-every-phase")
def test_a_stop_while_waiting_ends_at_once_and_costs_nothing(line: Line) -> None:
    line.start("first", queued=False)
    for name in ("second", "third", "fourth"):
        line.start(name)
    second = line.runs["second"]
    launch.send(second, pause := cmd.Pause(attempt=1))
    launch.send(second, stale := cmd.Stop(attempt=0))
    launch.send(second, stop := cmd.Stop(attempt=1))
    os.kill(line.supervisor("third"), signal.SIGTERM)
    line.wait_gone("second", "third")
    for name in ("second", "third"):
        assert line.status(name) == ("stopped", "ended while waiting for cpu")
        attempts = [line.runs[name].attempt(1)]
        assert attempts[0].engine is None
        assert seconds_spent(spans_of(attempts, {}, live=False), now=1e12) == 0
    reader = RunReader(second)
    reader.poll()
    answered = [reader.history.answer(order.id, order.attempt) for order in (pause, stale, stop)]
    assert [answer.state if answer else None for answer in answered] == [None, None, "applied"]
    assert line.order() == [(0, "first"), (1, "fourth")]
    line.go()
    line.wait_gone("first", "fourth")
    assert [entry for entry in line.log() if "second" in entry or "third" in entry] == []


def test_a_killed_waiter_holds_nobody_up(line: Line) -> None:
    line.start("first", queued=False)
    line.start("second")
    line.start("third")
    os.kill(line.supervisor("second"), signal.SIGKILL)
    line.wait_gone("second")
    state, detail = line.status("second")
    assert (state, detail) == ("lost", "ended while waiting for its device: resume puts it back into the queue")
    assert line.order() == [(0, "first"), (1, "third")]
    os.kill(line.supervisor("first"), signal.SIGKILL)
    line.wait_begun("third")
    launch.start(line.runs["second"])
    line.wait_state("second", "queued")
    assert line.order() == [(0, "third"), (1, "second")]


def test_the_order_can_be_changed_while_they_wait(line: Line) -> None:
    line.start("running", queued=False)
    names = ["a", "b", "c", "d"]
    for name in names:
        line.start(name)
    moves: list[tuple[str, queue.Where, list[str]]] = [
        ("c", "first", ["c", "a", "b", "d"]), ("c", "up", ["c", "a", "b", "d"]), ("a", "down", ["c", "b", "a", "d"]),
        ("c", "last", ["b", "a", "d", "c"]), ("c", "down", ["b", "a", "d", "c"]), ("d", "up", ["b", "d", "a", "c"]),
    ]  # fmt: skip
    for name, where, order in moves:
        place = queue.move(line.runs[name].path, where)
        assert [waiting for number, waiting in line.order() if number] == order
        assert (place.device, place.number, place.run.name) == ("cpu", order.index(name) + 1, name)
    with pytest.raises(UserError, match="running is not in a queue"):
        queue.move(line.runs["running"].path, "up")
    line.go()
    line.wait_gone(*line.runs)
    assert [entry.split()[1] for entry in line.log() if entry.startswith("begins")] == ["running", "b", "d", "a", "c"]


def test_only_trainings_on_the_same_device_are_waited_for(line: Line) -> None:
    line.start("task", queued=False, kind="task")
    line.start("elsewhere", device="cuda:1")
    line.wait_begun("elsewhere")
    line.start("here")
    line.wait_begun("here")
    assert [(place.device, place.number, place.id) for place in queue.places()] == [
        ("cpu", 0, line.runs["here"].info.id), ("cuda:1", 0, line.runs["elsewhere"].info.id),
    ]  # fmt: skip
    line.start("unqueued", queued=False)  # takes no turn: whoever starts it so knows what they do


HOLDER = """
import sys
from pathlib import Path
from engines.contract.rundir import RunDirectory
from engines.supervise import Supervisor
supervisor = Supervisor(RunDirectory(Path(sys.argv[1])))
trouble = supervisor.places.take()
print(supervisor._await_turn(supervisor._new_attempt(trouble)), flush=True)
sys.stdin.read()
"""


@pytest.mark.behaviour("ranks-under-torchrun")
def test_a_run_of_several_gpus_takes_a_place_at_each(line: Line, tmp_path: Path) -> None:
    def hold(name: str, devices: str, *, queued: bool) -> subprocess.Popen[str]:
        config = f"launch: {{device: cuda, devices: {devices}, queue: {str(queued).lower()}}}"
        run = create_run("toy", config, kind="training", engine="queue_engine", title="", path=tmp_path / "runs" / name)
        command = [sys.executable, "-c", HOLDER, str(run.path)]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "CUDA_VISIBLE_DEVICES": "2,3"}
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )  # fmt: skip

    def places() -> list[tuple[str, int, str]]:
        return sorted((place.device, place.number, place.run.name) for place in queue.places())

    with hold("first", "auto", queued=False) as first, hold("second", "2", queued=True) as second:
        assert first.stdout is not None
        assert second.stdout is not None
        assert first.stdout.readline() == "None\n"
        both = [("cuda:2", 0, "first"), ("cuda:2", 1, "second"), ("cuda:3", 0, "first")]
        wait_for("both", lambda: places() == both)
        first.communicate()
        assert second.stdout.readline() == "None\n"
        assert places() == [("cuda:2", 0, "second"), ("cuda:3", 0, "second")]
        second.communicate()


@pytest.mark.parametrize("queued", [True, False])
def test_a_queue_folder_of_others_is_not_used(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queued: bool
) -> None:
    """A run that is to wait says so and never starts, as a restart neither; one that is not to wait trains."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("COCKPIT_QUEUE", str(tmp_path / "open"))
    line.go()
    run = create_run(
        "toy", f"launch: {{queue: {str(queued).lower()}, restarts: 1}}", kind="training", engine="queue_engine",
        title="", path=tmp_path / "runs" / "one",
    )  # fmt: skip
    run.last.touch()
    line.runs["one"] = run
    said = pytest.raises(DataError, match=r"did not start: it cannot wait for .* can be changed by other users")
    with said if queued else contextlib.nullcontext():
        launch.start(run)
    line.wait_gone("one")
    state, detail = line.status("one")
    assert state == "failed"  # of those that began, too: this engine never says that it has finished
    assert ("can be changed by other users" in detail) == queued
    assert (line.log() == []) == queued


def test_a_place_that_was_removed_is_missed(line: Line) -> None:
    line.start("first", queued=False)
    run = line.start("second")
    (waiting,) = (queue.queue_folder() / "cpu").glob("*.waiting")
    waiting.unlink()
    line.wait_gone("second")
    state, detail = line.status("second")
    assert state == "failed"
    assert detail.startswith("it cannot wait for cpu: its entry in ")
    assert run.attempt(1).engine is None


def test_a_place_without_words_counts_all_the_same(line: Line) -> None:
    """As when the disk was full while it was taken."""
    line.start("first", queued=False)
    (place,) = (queue.queue_folder() / "cpu").iterdir()
    place.write_bytes(b"")
    line.start("second")
    wait_for("its place to be told", lambda: line.status("second") == ("queued", "1st for cpu"))
    assert [found.id for found in queue.places()] == ["", line.runs["second"].info.id]


def test_who_does_not_let_the_queue_go_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COCKPIT_QUEUE", str(tmp_path))
    monkeypatch.setattr(queue, "BUSY_SECONDS", 0.0)
    folder = queue.queue_folder() / "cpu"
    folder.mkdir()
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(queue.Busy, match="locked by another process"):
        queue.places()
    os.close(held)
    assert queue.places() == []


def test_runs_whose_shares_fit_run_beside_each_other_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each place is asked by a process of its own, as by its supervisor: a process that opens it loses its lock."""
    monkeypatch.setenv("COCKPIT_QUEUE", str(tmp_path))
    holders = []
    for name, share in (("amber", 0.5), ("birch", 0.4), ("coral", 0.3), ("delta", 0.1)):
        code = (
            "import sys; from pathlib import Path; from engines.host.queue import Place\n"
            f"place = Place('cpu', 'toy-{name}', Path('{tmp_path}/{name}'), waiting=True, share={share})\n"
            "print('taken', flush=True)\n"
            "for line in sys.stdin: print(*place.look(), flush=True)"
        )
        holders.append(
            subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert told(holders[-1]) == "taken"
    assert [asked(holder) for holder in holders] == ["0", "0", "1 birch", "2 coral"]  # delta would fit, out of turn
    end(holders[0])
    assert [asked(holder) for holder in holders[1:]] == ["0", "0", "0"]
    end(*holders[1:])


def told(holder: subprocess.Popen[str]) -> str:
    assert holder.stdout is not None
    return holder.stdout.readline().strip()


def asked(holder: subprocess.Popen[str]) -> str:
    assert holder.stdin is not None
    print(file=holder.stdin, flush=True)
    return told(holder)


def end(*holders: subprocess.Popen[str]) -> None:
    for holder in holders:
        holder.communicate()


def test_a_place_in_use_does_not_look_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COCKPIT_QUEUE", str(tmp_path))
    place = queue.Place("cpu", "toy-1-amber", tmp_path, waiting=False)
    (file,) = (queue.queue_folder() / "cpu").iterdir()
    os.utime(file, (0, 0))
    place.keep_fresh()
    assert file.stat().st_mtime > 1e9
