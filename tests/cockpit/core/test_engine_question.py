"""Questions to the engine: answered, refused with its sentences, given up with everything they started."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from cockpit.core import engine_question
from cockpit.core.engine_question import EngineQuestion, GivenUp
from engines.basics.errors import UserError
from tests.cockpit.driving import PATIENCE

ANSWERS = """
import json, sys
print("reading", file=sys.stderr)
print(json.dumps(sys.argv[1:]))
"""
WAITS = """
import json, os
print(json.dumps(os.environ["OMP_WAIT_POLICY"]))
"""
REFUSES = """
import sys
sys.exit("the data is gone")
"""
LEAVES = """
import subprocess, sys
print(subprocess.Popen(["sleep", "600"]).pid)
"""
HANGS = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), child.pid, file=sys.stderr, flush=True)
time.sleep(600)
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {
        "answers": ANSWERS, "waits": WAITS, "refuses": REFUSES, "hangs": HANGS, "leaves": LEAVES,
        "prints": "print('hello')",
    }.items():  # fmt: skip
        (tmp_path / f"asked_{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)


def test_an_answer_is_decoded_and_its_progress_heard(modules: None) -> None:
    heard: list[str] = []
    assert EngineQuestion("asked_answers", ["a b", "--set"]).answer(heard.append) == ["a b", "--set"]
    assert heard == ["reading"]


def test_what_is_measured_runs_as_an_engine_does(modules: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that spin while they wait make steps on a busy machine twenty times slower than those of a run."""
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert EngineQuestion("asked_waits", []).answer() == "passive"
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    assert EngineQuestion("asked_waits", []).answer() == "active"


@pytest.mark.behaviour("check-ends-whoever-asked")
def test_what_an_answer_left_behind_is_ended_and_not_waited_for(modules: None) -> None:
    assert not psutil.pid_exists(EngineQuestion("asked_leaves", []).answer())


def test_a_refusal_is_its_sentences(modules: None) -> None:
    with pytest.raises(UserError, match="the data is gone") as caught:
        EngineQuestion("asked_refuses", []).answer()
    assert caught.value.exit_code == 1
    with pytest.raises(UserError, match="did not print JSON"):
        EngineQuestion("asked_prints", []).answer()


def test_a_question_that_is_given_up_leaves_no_process(modules: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_question, "GRACE_SECONDS", 0.1)
    question = EngineQuestion("asked_hangs", [])
    heard: list[str] = []
    outcome: list[BaseException] = []

    def ask() -> None:
        try:
            question.answer(heard.append)
        except GivenUp as error:
            outcome.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    deadline = time.monotonic() + PATIENCE
    while not heard:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    started = [psutil.Process(int(pid)) for pid in heard[0].split()]
    question.cancel()
    asking.join(PATIENCE)
    assert len(outcome) == 1
    _, alive = psutil.wait_procs(started, timeout=30)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


ASKS = """
import sys
from cockpit.core.engine_question import EngineQuestion
EngineQuestion("asked_hangs", []).answer(lambda line: print(line, flush=True))
"""


@pytest.mark.behaviour("check-ends-whoever-asked")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
def test_whoever_asks_takes_the_question_along_however_it_ends(modules: None, number: signal.Signals) -> None:
    """Also what the question has started; its child is deaf to Ctrl-C."""
    command = [sys.executable, "-c", ASKS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as asking:
        assert asking.stdout is not None
        started = [psutil.Process(int(pid)) for pid in asking.stdout.readline().split()]
        between = started[0].parent()
        assert between is not None
        assert between.pid != asking.pid
        asking.send_signal(number)
        asking.wait()
        _, alive = psutil.wait_procs([*started, between], timeout=30)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def test_a_question_given_up_before_it_began_is_never_asked(modules: None) -> None:
    question = EngineQuestion("asked_hangs", [])
    question.cancel()
    with pytest.raises(GivenUp):
        question.answer()
