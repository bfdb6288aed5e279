"""Events in words, each under the kind it is chosen by, in the order in which they happened."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cockpit.core.run.follow import News
from cockpit.core.run.model import RunModel
from cockpit.core.run.notable import Choice, tell
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.rundir import Attempt, End, ProcessMark
from tests.support.fake_run import epoch


def model_of(
    *events: ev.Event, attempts: tuple[Attempt, ...] | None = None, commands: Sequence[cmd.Command] = ()
) -> RunModel:
    for seq, event in enumerate(events):
        event.time, event.attempt, event.seq = 1000.0 + seq, 1, seq
    model = RunModel()
    model.add(News(events=events, attempts=attempts, commands=tuple(commands)))
    return model


def lines(model: RunModel, choice: Choice = "events") -> list[str]:
    return [f"{told.word} {told.text}" for told in map(tell, model.notable) if told.among(choice)]


def attempt(end: End) -> Attempt:
    return Attempt(number=1, started=900.0, supervisor=ProcessMark(1, 0.0), ended=end)


def staged(number: int, stage: str, *, best: bool = False) -> ev.Epoch:
    row = epoch(number, best=best)
    row.stage = stage
    return row


def test_every_kind_has_its_words() -> None:
    pause = cmd.Pause(attempt=1, time=1000.5)
    started = ev.RunStarted(project="p", device="cuda:0", epochs=4, steps_per_epoch=10, columns=[], stages=[])
    model = model_of(
        started,
        ev.Phase(phase="training"),
        staged(1, "head", best=True),
        ev.Checkpoint(step=1200, epoch=1, files=["last.pt", "best.pt"], size=14_200_000, seconds=2.4),
        staged(2, "whole"),
        ev.Alert(code="x", level="warning", text="it \x1b[2Jgrows"),
        attempts=(attempt(End(reason="failed", time=2000.0, exit_code=7, last_step=20)),),
        commands=[pause],
    )
    assert lines(model) == [
        "start started on cuda:0",
        "command pause  sent",
        "best epoch 1, score 0.100",
        "stage whole, from epoch 2",
        "saved last.pt, best.pt · epoch 1 · step 1,200 · 14.2 MB in 2 s",
        "warning it grows",
        "end failed: exit code 7 after step 20",
    ]
    assert lines(model, "phases") == ["phase training · step 0"]
    assert lines(model, "commands") == ["command pause  sent"]
    assert [line.split()[0] for line in lines(model, "starts")] == ["start", "stage", "end"]


@pytest.mark.behaviour("fork-has-parents-best-to-beat")
@pytest.mark.parametrize(
    ("attempt", "step", "parent", "said"),
    [(1, 1200, "sim-1-amber", "forked from sim-1-amber at step 1,200 on cpu"), (1, 0, "", "started on cpu"),
     (1, 1200, "", "forked from another run at step 1,200 on cpu")],
)  # fmt: skip
def test_a_fork_is_not_called_a_resume(attempt: int, step: int, parent: str, said: str) -> None:
    begun = ev.RunStarted(
        project="p", device="cpu", epochs=4, steps_per_epoch=10, columns=[], stages=[], resumed_step=step,
        parent=parent, attempt=attempt,
    )  # fmt: skip
    assert lines(model_of(begun)) == [f"start {said}"]


def test_an_answer_changes_the_line_of_its_command_and_leaves_it_in_its_place() -> None:
    weights = cmd.SetLossWeights(attempt=1, time=999.0, weights={"look": 0.8})
    model = model_of(ev.Alert(code="x", level="info", text="later"), commands=[weights])
    before = model.notable
    assert model.notable is before
    model.add(
        News(events=(ev.CommandAnswer(command=weights, state="applied", step=361, time=1500.0, attempt=1, seq=9),))
    )
    assert model.notable is not before
    assert lines(model) == ["edit loss weights look 0.8  applied at step 361", "info later"]


def test_a_resume_inside_a_stage_is_no_new_stage() -> None:
    model = model_of(staged(1, "one"), staged(2, "two"), staged(1, "one"), staged(2, "two"))
    assert lines(model, "starts") == ["stage two, from epoch 2"]


def test_a_log_that_was_replaced_begins_again() -> None:
    model = model_of(ev.Alert(code="x", level="info", text="old"))
    model.add(News(restarted=True, events=(ev.Alert(code="x", level="info", text="new", time=1.0, attempt=1),)))
    assert lines(model) == ["info new"]
