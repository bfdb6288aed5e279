"""One attempt of an engine: whatever it comes to, its end and an answer to every command are on record."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engines import task
from engines.basics import files
from engines.basics.errors import DataError
from engines.contract import commands as cmd
from engines.contract.events import CommandAnswer, Ended, EventWriter
from engines.contract.rundir import RunDirectory
from engines.runs import launch
from engines.runtime.attempt import Attempt, carry_out
from tests.engines.conftest import wait_for


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory(tmp_path / "run")
    run.make()
    return run


def events(run: RunDirectory) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in run.events.read_bytes().splitlines()]


def final_answers(run: RunDirectory) -> list[tuple[str, str, str]]:
    answers = [event for event in events(run) if event["type"] == "command" and event["state"] != "seen"]
    return [(event["command"]["type"], event["state"], event["reason"]) for event in answers]


def finishes(attempt: Attempt) -> Ended:
    return Ended(reason="finished", step=7)


def finds_bad_data(attempt: Attempt) -> Ended:
    raise DataError("the data is bad")


def has_a_fault(attempt: Attempt) -> Ended:
    raise ZeroDivisionError


@pytest.mark.behaviour("stop-heard-every-phase")
@pytest.mark.parametrize("work", [finishes, finds_bad_data, has_a_fault])
def test_what_is_sent_until_the_end_is_answered_once(run: RunDirectory, work: Callable[[Attempt], Ended]) -> None:
    def work_and_send(attempt: Attempt) -> Ended:
        for command in (cmd.SaveCheckpoint(attempt=1), cmd.SetEpochs(attempt=1, epochs=9), cmd.Stop(attempt=1)):
            launch.send(run, command)
        return work(attempt)

    carry_out(run, 1, work_and_send)
    assert final_answers(run) == [
        ("save_checkpoint", "refused", "the run has ended"),
        ("set_epochs", "refused", "the run has ended"),
        ("stop", "applied", ""),
    ]
    assert len([event for event in events(run) if event["type"] == "ended"]) == 1


def test_a_closed_engine_answers_at_once_and_still_obeys_a_stop(run: RunDirectory) -> None:
    """As in a task, or while a finished training evaluates and exports."""

    def work(attempt: Attempt) -> Ended:
        attempt.listener.close("too late")
        launch.send(run, cmd.Pause(attempt=1))
        wait_for("the refusal", lambda: final_answers(run) == [("pause", "refused", "too late")])
        assert not attempt.listener.stop_requested
        launch.send(run, cmd.Stop(attempt=1, when="after_epoch"))
        wait_for("the stop", lambda: attempt.listener.stop_requested)
        return Ended(reason="stopped", step=0)

    assert carry_out(run, 1, work) == 3
    assert final_answers(run) == [("pause", "refused", "too late"), ("stop", "applied", "")]


def test_commands_that_are_read_again_do_not_happen_again(run: RunDirectory) -> None:
    """The log was put back by an editor: another file with the same commands and one more."""
    first, second = cmd.SaveCheckpoint(attempt=1), cmd.Evaluate(attempt=1)
    launch.send(run, first)

    def work(attempt: Attempt) -> Ended:
        assert attempt.listener.take(0, 0) == [first]
        files.replace_bytes(run.commands, run.commands.read_bytes() + cmd.encode(second) + b"\n")
        assert wait_for("the second command", lambda: attempt.listener.take(0, 0)) == [second]
        return Ended(reason="finished", step=0)

    carry_out(run, 1, work)


def test_a_full_disk_makes_no_engine_deaf(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the acknowledgement can be written, and the command is carried out all the same."""
    real = EventWriter.write

    def refuse(self: EventWriter, event: Any, *, durable: bool = False) -> None:
        if isinstance(event, CommandAnswer):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(self, event, durable=durable)

    monkeypatch.setattr(EventWriter, "write", refuse)

    def work(attempt: Attempt) -> Ended:
        for command in (cmd.Pause(attempt=1), cmd.Continue(attempt=1)):
            launch.send(run, command)
            assert wait_for("the command", lambda: attempt.listener.take(0, 0)) == [command]
        return Ended(reason="finished", step=0)

    assert carry_out(run, 1, work) == 0


def test_a_disk_that_is_full_is_a_sentence(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    def work(attempt: Attempt) -> Ended:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "runs/x/review/scores.npy")

    assert carry_out(run, 1, work) == 1
    sentence = "runs/x/review/scores.npy cannot be used: No space left on device; free some space, then resume"
    assert events(run)[-1]["detail"] == sentence
    assert capsys.readouterr().err == sentence + "\n"


def test_where_nothing_can_be_written_any_more_the_exit_code_is_left(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def refuse(*_: Any, **__: Any) -> None:
        raise full

    def work(attempt: Attempt) -> Ended:
        monkeypatch.setattr(EventWriter, "write", refuse)
        monkeypatch.setattr("builtins.print", refuse)
        raise full

    assert carry_out(run, 1, work) == 1


def test_a_task_knows_stop_alone(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(arguments: dict[str, Any], context: task.EventContext) -> None:
        launch.send(run, cmd.Evaluate(attempt=1))
        launch.send(run, cmd.Stop(attempt=1, when="after_epoch"))
        wait_for("the stop", lambda: _stopped(context))

    def _stopped(context: task.EventContext) -> bool:
        context.progress(1, 10, "pages")
        return False

    run.config.write_text("project: controls\ntask: make\narguments: {}\n")
    monkeypatch.setattr("engines.contract.spec.load_function", lambda reference: function)
    assert carry_out(run, 1, task.work) == 3
    assert final_answers(run) == [
        ("evaluate", "refused", "a task supports no command but stop"),
        ("stop", "applied", ""),
    ]
