"""Every state of a run follows from facts: the lock, the newest attempt, the events."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.rundir import End
from engines.runs.state import LIVE, RunReader, State, Status, describe_end
from tests.support.fake_run import FakeRun

Facts = Callable[[FakeRun], object]


def answered(state: str, command: cmd.Command) -> ev.CommandAnswer:
    return ev.CommandAnswer(command=command, state=state, step=3)  # type: ignore[arg-type]


PLAYED = ev.Progress(done=3, total=20, unit="games")


def delete_attempts(fake: FakeRun) -> None:
    shutil.rmtree(fake.run.attempts)


def misnumber(fake: FakeRun) -> None:
    path = fake.run.attempts / "1.json"
    path.write_bytes(path.read_bytes().replace(b'"number": 1', b'"number": 7'))


def damage_attempt(fake: FakeRun) -> None:
    (fake.run.attempts / "1.json").write_bytes(b"\x00" * 50)


LIVE_CASES: list[tuple[str, str, Facts]] = [
    ("starting", "", lambda f: None),
    ("queued", "", lambda f: f.begin(queued=True)),
    ("queued", "2nd for cpu", lambda f: f.begin(queued=True).say(ev.Phase(phase="queued", detail="2nd for cpu"))),
    # its turn has come, and its engine has not spoken yet
    ("starting", "", lambda f: f.begin().say(ev.Phase(phase="queued", detail="1st for cpu"))),
    # waiting again after a resume: where it stood before says nothing
    ("queued", "", lambda f: f.begin().started().epochs(1).end("stopped").begin(queued=True)),
    ("starting", "", lambda f: f.begin()),
    ("starting", "loading", lambda f: f.begin().say(ev.Phase(phase="loading"))),
    ("starting", "compiling", lambda f: f.begin().started().say(ev.Phase(phase="compiling"))),
    ("starting", "", lambda f: f.begin().started().epochs(1).end("stopped").begin()),
    ("running", "training", lambda f: f.begin().started()),
    ("running", "evaluating", lambda f: f.begin().started().say(ev.Phase(phase="evaluating"))),
    ("running", "evaluating, 3 of 20 games", lambda f: f.begin().started().say(ev.Phase(phase="evaluating"), PLAYED)),
    ("running", "evaluating",
     lambda f: f.begin().started().say(ev.Phase(phase="evaluating"), PLAYED, ev.Phase(phase="evaluating"))),
    ("running", "saving", lambda f: f.begin().started().say(ev.Phase(phase="saving"))),
    ("running", "working", lambda f: f.begin().say(ev.Phase(phase="working"))),
    ("paused", "", lambda f: f.begin().started().say(ev.Phase(phase="paused"))),
    ("running", "training", lambda f: f.begin().started().say(ev.Phase(phase="paused"), ev.Phase(phase="training"))),
    ("stopping", "training", lambda f: f.begin().started().say(answered("seen", cmd.Stop(attempt=1)))),
    ("stopping", "saving",
     lambda f: f.begin().started().say(answered("applied", cmd.Stop(attempt=1)), ev.Phase(phase="saving"))),
    ("running", "training", lambda f: f.begin().started().say(answered("refused", cmd.Stop(attempt=1)))),
    ("running", "training", lambda f: f.begin().started().say(answered("seen", cmd.Pause(attempt=1)))),
    # the engine has said that it ended, and has not left yet
    ("stopping", "leaving", lambda f: f.begin().started().say(ev.Ended(reason="finished", step=9))),
    # what a resumed attempt hears first says nothing of the phase it is in
    ("starting", "",
     lambda f: f.begin().started().end("stopped").begin().say(answered("seen", cmd.SetEpochs(attempt=2, epochs=9)))),
    # a stop that an earlier attempt heard does not concern the resumed one
    ("running", "training",
     lambda f: f.begin().started().say(answered("applied", cmd.Stop(attempt=1))).end("stopped").begin().started(10)),
]  # fmt: skip

ENDED_CASES: list[tuple[str, str, Facts]] = [
    ("lost", "never started", lambda f: None),
    ("lost", "the records of its attempts are gone", lambda f: delete_attempts(f.begin().started())),
    (
        "lost",
        "are gone; its events end with finished",
        lambda f: delete_attempts(f.begin().started().say(ev.Ended(reason="finished", step=40))),
    ),
    ("lost", "1.json cannot be read", lambda f: damage_attempt(f.begin().started())),
    ("lost", "1.json cannot be read (it says that it is attempt 7)", lambda f: misnumber(f.begin().started())),
    ("lost", "while waiting", lambda f: f.begin(queued=True).say(ev.Phase(phase="queued", detail="1st for cpu"))),
    (
        "stopped",
        "ended while waiting",
        lambda f: f.begin(queued=True).end("stopped", error="ended while waiting for cpu"),
    ),
    ("lost", "reboot", lambda f: f.begin().started().epochs(1)),
    ("finished", "", lambda f: f.begin().started().end("finished")),
    ("early-stopped", "", lambda f: f.begin().started().end("early-stopped")),
    ("stopped", "saved", lambda f: f.begin().started().end("stopped", error="saved")),
    ("out-of-budget", "the budget", lambda f: f.begin().started().end("out-of-budget", error="the budget is spent")),
    ("failed", "no data", lambda f: f.begin().started().end("failed", exit_code=1, error="no data")),
    ("failed", "killed by SIGKILL", lambda f: f.begin().started().end("failed", exit_code=None, signal="SIGKILL")),
]


@pytest.mark.parametrize(("state", "detail", "facts"), LIVE_CASES)
def test_states_of_a_run_whose_lock_is_held(tmp_path: Path, state: str, detail: str, facts: Facts) -> None:
    fake = FakeRun(tmp_path)
    facts(fake)
    with fake.locked():
        status = RunReader(fake.run).status()
    assert status == Status(state, detail)  # type: ignore[arg-type]
    assert status.live


def test_a_damaged_record_of_a_live_attempt_hides_no_run(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started()
    damage_attempt(fake)
    with fake.locked():
        status = RunReader(fake.run).status()
    assert status.state == "running"
    assert "1.json cannot be read" in status.detail


@pytest.mark.behaviour("run-stays-running-ever")
@pytest.mark.parametrize(("state", "detail", "facts"), ENDED_CASES)
def test_states_of_a_run_whose_lock_is_free(tmp_path: Path, state: str, detail: str, facts: Facts) -> None:
    fake = FakeRun(tmp_path)
    facts(fake)
    status = RunReader(fake.run).status()
    assert status.state == state
    assert detail in status.detail
    assert not status.live


def test_every_state_is_reached_above() -> None:
    reached = {state for state, _, _ in LIVE_CASES + ENDED_CASES}
    assert reached == set(get_args(State)) - {"stale"}  # which depends on a link to the machine of the run
    assert {state for state, _, _ in LIVE_CASES} == LIVE


def test_an_end_on_record_counts_while_the_supervisor_still_holds_the_lock(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started().end("finished")
    with fake.locked():
        assert RunReader(fake.run).status().state == "finished"


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (End(reason="finished", time=0), ""),
        (End(reason="stopped", time=0, error="saved"), "saved"),
        (End(reason="failed", time=0, error="the engine could not be started"), "the engine could not be started"),
        (End(reason="failed", time=0, exit_code=2, last_step=7, error="no data"), "exit code 2 after step 7: no data"),
        (
            End(reason="failed", time=0, signal="SIGKILL", oom_kill=True, last_step=9),
            "killed by SIGKILL, out of memory (the kernel killed it) after step 9",
        ),
    ],
)
def test_an_end_in_words(end: End, words: str) -> None:
    assert describe_end(end) == words


def test_an_attempt_that_begins_while_the_status_is_asked_for_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor takes the lock and records its attempt just after the lock was found free."""
    fake = FakeRun(tmp_path).begin().started().end("stopped")
    answers = [None, 4711]

    def holder(path: Path) -> int | None:
        if len(answers) == 2:
            fake.begin()
        return answers.pop(0)

    monkeypatch.setattr("engines.runs.state.lock_holder", holder)
    assert RunReader(fake.run).status() == Status("starting")


@pytest.mark.behaviour("state-shown-process-exit")
def test_a_reader_sees_the_whole_life_of_a_run(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin()
    reader = RunReader(fake.run)
    with fake.locked():
        assert reader.status().state == "starting"
        fake.started().epochs(1, 2)
        assert reader.status().state == "running"
        assert list(reader.history.epochs) == [1, 2]
        fake.say(ev.Ended(reason="finished", step=20)).end("finished")
    assert reader.status().state == "finished"
    assert reader.history.ended is not None
    assert reader.damaged_lines == 0


@pytest.mark.behaviour("damage-middle-costs-lines")
def test_damage_in_the_events_changes_no_state(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started().epochs(1)
    with open(fake.run.events, "ab") as file:
        file.write(b"\xff damaged \n[]\n")
    fake.epochs(2).end("finished")
    reader = RunReader(fake.run)
    assert reader.status().state == "finished"
    assert list(reader.history.epochs) == [1, 2]
    assert reader.damaged_lines == 2


def test_a_replaced_event_log_begins_a_new_history(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path).begin().started().epochs(1, 2, 3)
    reader = RunReader(fake.run)
    reader.poll()
    fake.run.events.write_bytes(b"")
    fake.started().epochs(1)
    reader.poll()
    assert list(reader.history.epochs) == [1]


def test_a_lost_run_promises_a_resume_only_where_there_is_one(tmp_path: Path) -> None:
    training = FakeRun(tmp_path, "controls-20261127-201400-amber").begin().started()
    assert RunReader(training.run).status().detail.endswith(": resume starts at the last checkpoint")
    task = FakeRun(tmp_path, "controls-20261127-201400-birch", kind="task").begin().say(ev.Phase(phase="working"))
    assert "resume" not in RunReader(task.run).status().detail
    reported = FakeRun(tmp_path, "controls-20261127-201400-cedar").begin().started()
    attempt = reported.run.attempt(1)
    attempt.engine = attempt.supervisor  # a program that reports itself
    reported.run.write_attempt(attempt)
    assert RunReader(reported.run).status() == Status("lost", "the program is gone and recorded no end (killed?)")
