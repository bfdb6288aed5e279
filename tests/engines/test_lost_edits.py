"""An edit that waited for its step when the engine was killed is applied by the resume, at that step."""

from __future__ import annotations

import pytest

from engines.compare import compare
from engines.contract import commands as cmd
from engines.contract.events import CommandAnswer
from engines.runs import launch
from tests.engines.conftest import LiveRun
from tests.engines.test_replay import NewRun

SETTINGS = ("training.batch_size=16", "training.epochs=2", "training.stages=[]", "training.steps_per_epoch=6")
WEIGHTS = {"radius": 3.0, "side": 0.5}


def edits() -> list[cmd.Edit]:
    """The second is made in the same epoch, at a step that the first attempt does not come to either."""
    return [
        cmd.SetLossWeights(attempt=1, at_step=9, weights=WEIGHTS),
        cmd.SetLrScale(attempt=1, at_step=10, scale=0.5),
    ]


def applied(live: LiveRun) -> list[tuple[cmd.Command, int]]:
    live.reader.poll()
    return [(answer.command, answer.step) for answer in live.reader.history.effective]


def answers(live: LiveRun, edit: cmd.Command) -> list[CommandAnswer]:
    live.reader.poll()
    return [answer for answer in live.reader.history.answers if answer.command.id == edit.id]


def killed(live: LiveRun, *orders: cmd.Command) -> LiveRun:
    """Killed in step 8, after a checkpoint at 6: it has heard the orders, and no more."""
    for order in orders:
        live.send(order)
    live.killed_here(8)
    assert [[answer.state for answer in answers(live, order)] for order in orders] == [["seen"]] * len(orders)
    return live


@pytest.mark.behaviour("edit-waited-step-when")
def test_killed_before_its_edits_equals_uninterrupted(new_run: NewRun) -> None:
    """Killed once more in the resume, before they are due there."""
    straight, live = new_run(*SETTINGS), new_run(*SETTINGS)
    for edit in edits():
        straight.send(edit)
    assert straight.here() == "finished", straight.log()
    killed(live, *edits())
    resume, sentences = launch.prepare_resume(live.run)
    assert sentences == [
        "loss weights radius 3, side 0.5: sent again: the last attempt ended before applying it",
        "learning rate × 0.5: sent again: the last attempt ended before applying it",
    ]
    live.killed_here(1, resume=resume)
    assert applied(live) == []
    assert live.resume_here() == "finished", live.log()
    assert [(cmd.describe(command), step) for command, step in applied(live)] == [
        ("loss weights radius 3, side 0.5", 9), ("learning rate × 0.5", 10),
    ]  # fmt: skip
    found = compare(straight.run, live.run)
    assert (found["first_step"], found["first_epoch"], found["different"]) == (None, None, [])


@pytest.mark.behaviour("edit-waited-step-when")
def test_what_the_resume_sets_itself_is_not_set_back_by_a_lost_edit(new_run: NewRun) -> None:
    live = killed(new_run(*SETTINGS), *edits())
    assert live.resume_here("loss_weights.radius=0.75", "training.lr=0.001") == "finished", live.log()
    weights, scales = {}, []
    for command, step in applied(live):
        if isinstance(command, cmd.SetLossWeights):
            weights[step] = command.weights
        elif isinstance(command, cmd.SetLrScale):
            scales.append((step, command.scale))
    assert weights == {6: {"radius": 0.75}, 9: {"side": 0.5}}
    assert [step for step, _ in scales] == [6]


def test_what_was_answered_or_steers_an_attempt_is_not_sent_again(new_run: NewRun) -> None:
    """Applied edits come back from the record; a pause or a stop was meant for the attempt that is over."""
    live = new_run(*SETTINGS)
    done, refused = cmd.SetLrScale(attempt=1, at_step=3, scale=0.5), cmd.SetEpochs(attempt=1, at_step=3, epochs=0)
    live.send(done)
    live.send(refused)
    killed(live, cmd.Pause(attempt=1, at_step=9), cmd.Evaluate(attempt=1, at_step=9), cmd.Stop(attempt=1, at_step=9))
    assert [[answer.state for answer in answers(live, edit)][-1] for edit in (done, refused)] == ["applied", "refused"]
    resume, sentences = launch.prepare_resume(live.run)
    assert (list(resume.edits), sentences) == ([], [])
