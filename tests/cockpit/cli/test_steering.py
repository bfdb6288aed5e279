"""Commands to a live run: checked before they are sent, sent to the newest attempt, their answers told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cockpit.cli import steering
from cockpit.cli.steering import parse_scale, parse_weights
from cockpit.core.run import ending
from engines.basics.errors import DataError, UserError
from engines.basics.lock import lock_holder
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.rundir import RunDirectory
from engines.contract.steps import StepWriter
from engines.runs import launch
from tests.cockpit.cli.conftest import COMMAND, Cockpit
from tests.support.fake_run import FakeEngine, FakeRun


@pytest.fixture
def live(runs: Path) -> FakeRun:
    """A run in its second attempt, training; the test holds its lock."""
    fake = FakeRun(runs).begin().started().epochs(1).end("stopped")
    return fake.begin().started(resumed_step=10)


def applies(fake: FakeRun, step: int = 12) -> Callable[[cmd.Command], None]:
    """An engine that applies whatever it hears."""

    def react(command: cmd.Command) -> None:
        fake.say(ev.CommandAnswer(command=command, state="seen", step=step - 1))
        fake.say(ev.CommandAnswer(command=command, state="applied", step=step))

    return react


@pytest.mark.parametrize(
    ("typed", "sent", "told"),
    [
        (["pause", "last"], cmd.Pause, "pause: applied at step 12"),
        (["continue", "last"], cmd.Continue, "continue: applied at step 12"),
        (["checkpoint", "last"], cmd.SaveCheckpoint, "save a checkpoint: applied at step 12"),
        (["lr", "last", "0.5x"], cmd.SetLrScale, "learning rate × 0.5: applied at step 12"),
        (
            ["weights", "last", "look=0.25", "action=0"],
            cmd.SetLossWeights,
            "loss weights look 0.25, action 0: applied at step 12",
        ),
    ],
)
def test_a_command_reaches_the_newest_attempt_and_its_answer_is_told(
    cockpit: Cockpit, live: FakeRun, typed: list[str], sent: type[cmd.Command], told: str
) -> None:
    with live.locked(), FakeEngine(live, applies(live)) as engine:
        answer = cockpit(*typed)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, f"{told}\n", "")
    (command,) = engine.heard
    assert type(command) is sent
    assert command.attempt == 2


def test_a_refusal_is_told_with_its_reason(cockpit: Cockpit, live: FakeRun) -> None:
    def refuse(command: cmd.Command) -> None:
        live.say(ev.CommandAnswer(command=command, state="refused", step=12, reason="the run is not paused"))

    with live.locked(), FakeEngine(live, refuse):
        answer = cockpit("continue", "last")
    assert (answer.returncode, answer.stdout) == (1, "continue: refused because the run is not paused\n")


def test_a_command_that_waits_for_a_long_phase_is_told_as_seen(
    live: FakeRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(steering, "ANSWER_SECONDS", 0.0)
    live.say(ev.Phase(phase="evaluating"))
    send = launch.send

    def acknowledged(run: RunDirectory, command: cmd.Command) -> None:
        send(run, command)
        live.say(ev.CommandAnswer(command=command, state="seen", step=12))

    monkeypatch.setattr(launch, "send", acknowledged)
    with live.locked():
        assert steering._ask(live.run, cmd.Pause(attempt=2)) == 0
    assert capsys.readouterr().out == "pause: received; applied when evaluating is over\n"


def test_no_answer_is_a_failure(
    live: FakeRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(steering, "ANSWER_SECONDS", 0.0)
    with live.locked():
        assert steering._ask(live.run, cmd.Pause(attempt=2)) == 1
    assert "no answer" in capsys.readouterr().err


def test_a_run_that_ends_first_is_told_as_ended(live: FakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    with live.locked(), FakeEngine(live, lambda command: live.end("finished")):
        assert steering._ask(live.run, cmd.Pause(attempt=2)) == 1
    assert capsys.readouterr().err == f"cockpit: pause: not applied, {live.id} is finished\n"


@pytest.mark.parametrize(
    "typed", [["pause"], ["continue"], ["stop"], ["checkpoint"], ["lr", "0.5x"], ["weights", "look=1"]]
)
def test_only_a_live_run_is_steered(capsys: pytest.CaptureFixture[str], runs: Path, typed: list[str]) -> None:
    from cockpit.cli import main

    fake = FakeRun(runs).begin().started().end("finished")
    assert main([typed[0], "last", *typed[1:]]) == 1
    assert capsys.readouterr().err == f"cockpit: {fake.id} is finished; only a live run can be steered.\n"
    assert not fake.run.commands.exists()


def test_every_faulty_weight_is_told_and_nothing_is_sent(cockpit: Cockpit, live: FakeRun) -> None:
    with live.locked():
        answer = cockpit("weights", "last", "acton=1", "look=-1", "look", "look=nan", "look=1", "look=2", "action=1_0")
    assert answer.returncode == 2
    assert answer.stderr.splitlines() == [
        "cockpit: acton=1: there is no head 'acton' (did you mean 'action'?); heads: action, look.",
        "cockpit: look=-1: a weight must be a finite number of 0 or more.",
        "cockpit: look: expected HEAD=WEIGHT, as in action=0.5.",
        "cockpit: look=nan: a weight must be a finite number of 0 or more.",
        "cockpit: look=2: look is given twice.",
        "cockpit: action=1_0: a weight must be a finite number of 0 or more.",
    ]
    assert not live.run.commands.exists()


def test_weights_are_numbers() -> None:
    assert parse_weights(["a=1e-3", "b=0"], ["a", "b"]) == {"a": 1e-3, "b": 0.0}


@pytest.mark.parametrize(("text", "scale"), [("0.5x", 0.5), ("2×", 2.0), ("1e-1x", 0.1)])
def test_a_scale_ends_in_x(text: str, scale: float) -> None:
    assert parse_scale(text) == scale


@pytest.mark.parametrize("text", ["0.5", "x", "nanx", "infx", "", "halfx", "1_0x"])
def test_what_could_be_a_learning_rate_is_not_taken_for_a_scale(text: str) -> None:
    with pytest.raises(UserError, match=r"as in 0\.5x"):
        parse_scale(text)


@pytest.mark.parametrize("text", ["0x", "-1x", "1e30x", "1e-30x"])
def test_a_scale_that_would_stop_or_ruin_the_training_is_a_slip(text: str) -> None:
    with pytest.raises(UserError, match="the scale must be a number from 1e-06 to 1000"):
        parse_scale(text)


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (["epochs", "last", "0"], "epochs 0: the run cannot end before epoch 1 is done, got 0"),
        (["epochs", "last", "99999999999999999999"], "the epochs must be 1,000,000,000 or fewer"),
        (["patience", "last", "0"], "patience 0: the patience must be 1 or more, got 0"),
        (["patience", "last", "99999999999999999999"], "the patience must be 1,000,000,000 or less"),
    ],
)
def test_a_number_no_run_can_have_is_not_sent(
    live: FakeRun, capsys: pytest.CaptureFixture[str], command: list[str], fault: str
) -> None:
    """One that no log can hold would end the command, or be taken for damage, and nobody would answer it."""
    from cockpit.cli import main

    with live.locked():
        assert main(command) == 2
    assert fault in capsys.readouterr().err
    assert not live.run.commands.exists()


def test_weights_that_no_epoch_would_be_trained_with_are_not_sent(
    live: FakeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    from cockpit.cli import main

    live.started(epochs=2).epochs(1)
    with live.locked():
        assert main(["weights", "last", "look=1", "--at", "epoch"]) == 2
    assert "epoch 2 is the run's last: no epoch would be trained with them" in capsys.readouterr().err
    assert not live.run.commands.exists()


def test_a_task_has_no_weights(cockpit: Cockpit, runs: Path) -> None:
    fake = FakeRun(runs, kind="task").begin().say(ev.Phase(phase="working"))
    with fake.locked():
        answer = cockpit("weights", "last", "look=1")
    assert answer.returncode == 2
    assert "is a task and has no loss weights" in answer.stderr


def stops(fake: FakeRun, holder: int, *, score: float) -> Callable[[cmd.Command], None]:
    """An engine that stops when it is told to, and a supervisor that records it and leaves."""

    def react(command: cmd.Command) -> None:
        assert isinstance(command, cmd.Stop)
        fake.say(ev.CommandAnswer(command=command, state="applied", step=20)).epochs(2, best=2, score=score)
        fake.end("stopped", error="saved")
        os.kill(holder, signal.SIGKILL)

    return react


@pytest.mark.parametrize("after", ["step", "epoch"])
def test_stop_waits_until_the_run_has_ended_and_nothing_holds_it(cockpit: Cockpit, live: FakeRun, after: str) -> None:
    with live.locked() as holder, FakeEngine(live, stops(live, holder, score=0.75)) as engine:
        answer = cockpit("stop", "last", "--after", after)
        assert lock_holder(live.run.lock) is None
    assert answer.returncode == 0
    assert answer.stdout == ""
    assert f"cockpit: stopping {live.id} after this {after}\n" in answer.stderr
    assert f"cockpit: {live.id} stopped: saved; best score 0.750 in epoch 2" in answer.stderr
    (order,) = engine.heard
    assert order == cmd.Stop(attempt=2, when=f"after_{after}", id=order.id, time=order.time)  # type: ignore[arg-type]


def test_no_longer_waiting_for_a_stop_leaves_it_asked(live: FakeRun) -> None:
    with live.locked(), subprocess.Popen([*COMMAND, "stop", "last"], stderr=subprocess.PIPE, text=True) as stop:
        assert stop.stderr is not None
        assert stop.stderr.readline() == f"cockpit: stopping {live.id} after this step\n"
        stop.send_signal(signal.SIGINT)
        assert stop.wait() == 130
        assert stop.stderr.read() == f"cockpit: no longer waiting; {live.id} still stops after this step\n"
    assert live.run.commands.read_bytes().count(b'"stop"') == 1


def test_a_stop_that_cannot_be_written_is_sent_as_a_signal(live: FakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    live.run.commands.mkdir()  # no command can be appended, as on a full disk
    sent: list[tuple[int, int]] = []
    with live.locked() as holder:
        monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
        launch.send_stop(live.run, cmd.Stop(attempt=2))
        monkeypatch.undo()
        assert sent == [(holder, signal.SIGTERM)]
    with pytest.raises(IsADirectoryError):
        launch.send_stop(live.run, cmd.Stop(attempt=2))


def test_kill_ends_a_run_and_waits_until_nothing_holds_it(cockpit: Cockpit, live: FakeRun) -> None:
    with live.locked():
        answer = cockpit("kill", "last")
        assert lock_holder(live.run.lock) is None
    assert (answer.returncode, answer.stdout) == (0, f"{live.id} killed; no processes left\n")
    attempt = live.run.newest_attempt()
    assert attempt is not None
    assert attempt.ended is not None
    assert attempt.ended.error == "killed on request"
    again = cockpit("kill", "last")
    assert again.returncode == 1
    assert f"{live.id} is stopped: no process to kill" in again.stderr


def test_a_run_of_another_machine_is_not_killed_by_number(
    cockpit: Cockpit, live: FakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "lock_holder", lambda path: -1)
    monkeypatch.setattr(os, "kill", lambda pid, number: pytest.fail("a signal was sent"))
    answer = cockpit("kill", "last")
    assert answer.returncode == 1
    assert "runs on another machine or in another container" in answer.stderr


def test_a_damaged_record_keeps_nobody_from_killing(cockpit: Cockpit, live: FakeRun) -> None:
    """The test's stand-in for a supervisor fails to read it too, and leaves all the same."""
    with live.locked():
        (live.run.attempts / "2.json").write_text("{")
        answer = cockpit("kill", "last")
        assert lock_holder(live.run.lock) is None
    assert answer.returncode == 0


@pytest.mark.parametrize(
    ("typed", "sent", "told"),
    [
        (["evaluate", "last"], cmd.Evaluate, "evaluate now: applied at step 12"),
        (["early-stop", "last"], cmd.StopEarly, "stop early after this epoch: applied at step 12"),
        (["epochs", "last", "9"], cmd.SetEpochs, "epochs 9: applied at step 12"),
        (["patience", "last", "7"], cmd.SetPatience, "patience 7: applied at step 12"),
    ],
)
def test_orders_about_the_end_are_sent_and_answered(
    cockpit: Cockpit, live: FakeRun, typed: list[str], sent: type[cmd.Command], told: str
) -> None:
    with live.locked(), FakeEngine(live, applies(live)) as engine:
        answer = cockpit(*typed)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, f"{told}\n", "")
    [command] = engine.heard
    assert type(command) is sent
    assert [getattr(command, name) for name in ("epochs", "patience") if hasattr(command, name)] == [
        int(number) for number in typed[2:]
    ]


def test_weights_are_shown_with_losses_and_shares(cockpit: Cockpit, live: FakeRun) -> None:
    writer = StepWriter(live.run.steps, ["epoch", "time", "lr", "loss", "action", "look"])
    writer.append(np.array([[step, 2, 1, 1e9, 1e-3, 1.0, 0.5, 3.0] for step in range(13)]))
    writer.close()

    def measure(command: cmd.Command) -> None:
        live.say(ev.GradientNorms(step=12, norms={"action": 3.0, "look": 2.0}, parameters=9))
        applies(live)(command)

    edit = cmd.SetLossWeights(attempt=2, weights={"look": 0.25})
    live.say(ev.CommandAnswer(command=edit, state="applied", step=11))
    plain = cockpit("weights", "last", "--json")
    assert [head["gradient_share"] for head in json.loads(plain.stdout)["heads"]] == [None, None]
    with live.locked(), FakeEngine(live, measure):
        answer = cockpit("weights", "last", "--measure", "--json")
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)
    assert told["gradient_step"] == 12
    action, look = told["heads"]
    assert (look["default"], look["now"], look["raw_loss"]) == (0.5, 0.25, 3.0)
    assert action["share"] == pytest.approx(0.5 / (0.5 + 0.75))
    assert look["gradient_share"] == pytest.approx(0.5 / 3.5)


def test_weights_of_a_run_without_any_and_of_one_that_has_ended(cockpit: Cockpit, live: FakeRun) -> None:
    live.end("finished")
    assert "--measure" not in cockpit("weights", "last").stderr  # only a live run can be asked to
    live.run.config.write_text("project: controls\n")
    answer = cockpit("weights", "last")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert f"{live.id} has no loss weights" in answer.stderr


def test_all_live_runs_are_stopped_at_once(cockpit: Cockpit, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live = [FakeRun(runs, f"controls-20261127-201400-{word}").begin().started() for word in ("oak", "elm")]
    FakeRun(runs, "controls-20261127-201400-fir").begin().started().end("finished")
    asked: list[str] = []

    def send(run: RunDirectory, number: signal.Signals) -> bool:
        if run.path.name.endswith("elm"):
            raise DataError("it runs elsewhere.")
        asked.append(f"{run.path.name[-3:]} {number.name}")
        if is_live := run.path.name.endswith("oak"):
            live[0].end("stopped")
        return is_live

    monkeypatch.setattr(steering, "send_signal", send)
    stopped = cockpit("stop", "--all")
    assert sorted(asked) == ["fir SIGTERM", "oak SIGTERM"]
    assert stopped.stdout == f"{live[0].id} stopped\n"
    assert stopped.stderr == f"cockpit: {live[1].id} is not stopped: it runs elsewhere.\n"
    assert stopped.returncode == 1
    for wrong in (("stop",), ("stop", "last", "--all")):
        refused = cockpit(*wrong)
        assert (refused.returncode, refused.stderr) == (2, "cockpit: stop: give a RUN, or --all for every live one.\n")
