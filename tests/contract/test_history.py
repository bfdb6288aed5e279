"""The effective view of a run: one row an epoch, old tails kept, edits counted once."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.runs.history import History, column_value
from tests.support.fake_run import COLUMNS, STEPS_PER_EPOCH, epoch


def started(attempt: int, resumed_step: int = 0) -> ev.RunStarted:
    return ev.RunStarted(
        attempt=attempt, time=float(attempt), project="controls", device="cpu", epochs=9,
        steps_per_epoch=STEPS_PER_EPOCH, columns=COLUMNS, stages=[], resumed_step=resumed_step,
    )  # fmt: skip


def row(number: int, attempt: int, *, best: bool = False) -> ev.Epoch:
    event = epoch(number, best=best)
    event.attempt = attempt
    return event


@st.composite
def lives(draw: st.DrawFn) -> list[ev.Event]:
    """Logs of runs that are stopped anywhere and resumed from anywhere before, some before their first new row."""
    events: list[ev.Event] = []
    done = 0
    for attempt in range(1, draw(st.integers(1, 5)) + 1):
        resumed = draw(st.integers(0, done * STEPS_PER_EPOCH))
        events.append(started(attempt, resumed))
        done = resumed // STEPS_PER_EPOCH
        for _ in range(draw(st.integers(0, 4))):
            done += 1
            events.append(row(done, attempt, best=draw(st.booleans())))
    return events


def rows_in_force(events: list[ev.Event]) -> list[ev.Epoch]:
    """By the definition: a row counts unless a later attempt resumed from a step before it."""
    return [
        event
        for place, event in enumerate(events)
        if isinstance(event, ev.Epoch)
        and not any(isinstance(later, ev.RunStarted) and later.resumed_step < event.step for later in events[place:])
    ]


@pytest.mark.behaviour("after-resume-older-checkpoint")
@given(lives())
def test_the_table_is_what_the_definition_says(events: list[ev.Event]) -> None:
    history = History()
    history.extend(events)
    expected = rows_in_force(events)
    assert list(history.epochs.values()) == expected
    assert list(history.epochs) == [event.epoch for event in expected]
    every = [event for event in events if isinstance(event, ev.Epoch)]
    assert len(history.superseded) + len(expected) == len(every)
    assert all(event not in expected for event in history.superseded)
    marked = [event for event in expected if event.best]
    assert history.best == (marked[-1] if marked else None)
    assert history.newest == (expected[-1] if expected else None)
    starts = [event for event in events if isinstance(event, ev.RunStarted)]
    assert history.started == starts[-1]
    assert history.first_started == 1.0
    assert history.resumes == [event.resumed_step for event in starts[1:]]


@given(lives(), st.data())
def test_events_may_come_in_any_portions(events: list[ev.Event], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(events)))
    at_once, in_parts = History(), History()
    at_once.extend(events)
    in_parts.extend(events[:cut])
    in_parts.extend(events[cut:])
    assert dataclasses.asdict(at_once) == dataclasses.asdict(in_parts)


def table(history: History) -> list[dict[str, object]]:
    """The epochs in force without what two equal runs may differ in."""
    differing = {"time", "attempt", "seq", "seconds"}
    return [{k: v for k, v in msgspec.to_builtins(e).items() if k not in differing} for e in history.epochs.values()]


@pytest.mark.behaviour("run-keeps-id-over")
def test_equal_runs_have_equal_views_whatever_their_attempts() -> None:
    straight, resumed = History(), History()
    straight.extend([started(1), row(1, 1, best=True), row(2, 1), row(3, 1)])
    resumed.extend([started(1), row(1, 1, best=True), row(2, 1), started(2, 15), row(2, 2), row(3, 2)])
    assert table(straight) == table(resumed)
    resumed.add(row(4, 2))
    assert table(straight) != table(resumed)


def test_a_fork_counts_the_epochs_of_its_parent() -> None:
    history = History()
    history.extend([started(1, 2 * STEPS_PER_EPOCH)])
    assert history.done == 2
    history.extend([row(3, 1), row(4, 1)])
    assert (history.done, len(history.epochs)) == (4, 2)


def test_patience_is_that_of_the_last_edit_of_the_attempt() -> None:
    history = History()
    one = msgspec.structs.replace(started(1), patience=9)
    edit = ev.CommandAnswer(attempt=1, command=cmd.SetPatience(attempt=1, patience=3), state="seen", step=5)
    history.extend([one, edit])
    assert history.patience == 9
    history.add(msgspec.structs.replace(edit, state="applied"))
    assert history.patience == 3
    history.add(ev.Phase(phase="loading", step=0, attempt=2))  # has told no plan of its own yet
    assert history.patience == 3
    history.add(msgspec.structs.replace(started(2), patience=4))
    assert history.patience == 4


def applied(command: cmd.Command, attempt: int, step: int, epoch: int = 0) -> ev.CommandAnswer:
    return ev.CommandAnswer(command=command, state="applied", attempt=attempt, step=step, epoch=epoch)


def test_what_a_resume_undid_is_in_force_again_when_it_is_applied_again() -> None:
    look = cmd.SetLossWeights(attempt=1, weights={"look": 0.2})
    both = cmd.SetLossWeights(attempt=1, weights={"look": 0.9, "action": 3.0})
    rate = cmd.SetLrScale(attempt=1, scale=0.5)
    configured = {"action": 1.0, "look": 0.5}
    history = History()
    history.extend([started(1), row(1, 1), applied(look, 1, 12), applied(rate, 1, 14), applied(both, 1, 15)])
    assert (history.loss_weights(configured), history.lr_scale) == ({"action": 3.0, "look": 0.9}, 0.5)
    history.add(started(2, resumed_step=14))
    assert (history.loss_weights(configured), history.lr_scale) == ({"action": 1.0, "look": 0.2}, 0.5)
    assert [edit.command for edit in history.edits_in_force] == [look, rate]
    history.add(applied(both, 2, 15))
    assert history.loss_weights(configured) == {"action": 3.0, "look": 0.9}
    assert len(history.edits()) == 3


def test_a_resume_before_an_evaluation_undoes_what_came_after_it_at_the_same_step() -> None:
    edit = cmd.SetEpochs(attempt=1, epochs=20)
    history = History()
    history.extend([started(1), row(1, 1), applied(edit, 1, STEPS_PER_EPOCH, epoch=1)])
    assert (history.planned, history.done) == (20, 1)
    history.add(msgspec.structs.replace(started(2, STEPS_PER_EPOCH), resumed_epoch=0))
    assert (history.planned, history.epochs, len(history.superseded)) == (9, {}, 1)


def test_patience_is_that_of_the_stage_unless_it_was_edited() -> None:
    stages = [ev.StageInfo("train", 1, 2, patience=3), ev.StageInfo("fine", 3, 9, patience=8)]
    history = History()
    history.extend([msgspec.structs.replace(started(1), stages=stages, patience=3), row(1, 1)])
    assert history.patience == 3
    history.add(msgspec.structs.replace(row(3, 1), stage="fine"))
    assert history.patience == 8
    history.add(applied(cmd.SetPatience(attempt=1, patience=5), 1, 31))
    assert history.patience == 5


def test_a_new_attempt_forgets_what_the_old_one_was_doing() -> None:
    history = History()
    history.extend([started(1), ev.Phase(attempt=1, phase="paused"), ev.Progress(attempt=1, done=1, total=2, unit="x"),
                    ev.Ended(attempt=1, reason="stopped", step=5), started(2, 5)])  # fmt: skip
    assert (history.phase, history.progress, history.ended, history.attempt) == (None, None, None, 2)


def test_the_newest_answer_of_the_attempt_counts() -> None:
    order = cmd.Pause(attempt=2)
    history = History()
    for attempt, state in ((1, "applied"), (2, "seen"), (2, "refused")):
        history.add(ev.CommandAnswer(attempt=attempt, command=order, state=state, step=1))  # type: ignore[arg-type]
    answer = history.answer(order.id, 2)
    assert answer is not None
    assert answer.state == "refused"
    assert history.answer(order.id, 3) is None
    assert history.answer("unknown", 2) is None


def test_edits_are_told_once_in_the_order_they_were_first_applied() -> None:
    first, second = cmd.SetLrScale(attempt=1, scale=0.5), cmd.SetLossWeights(attempt=1, weights={"look": 1.0})
    refused, pause = cmd.SetEpochs(attempt=1, epochs=1), cmd.Pause(attempt=1)
    history = History()
    for command, state, step in (
        (first, "seen", 1), (first, "applied", 2), (pause, "applied", 3), (second, "applied", 4),
        (refused, "refused", 5), (first, "applied", 2), (second, "applied", 4),
    ):  # fmt: skip
        history.add(ev.CommandAnswer(command=command, state=state, step=step))  # type: ignore[arg-type]
    assert [(edit.command, edit.step) for edit in history.edits()] == [(first, 2), (second, 4)]


@pytest.mark.parametrize(
    ("source", "value"),
    [("epoch", 3), ("train.loss", 1 / 3), ("train.none", None), ("validation.action_f1", 0.25), ("score", 0.3),
     ("lr", 5e-4), ("best", False), ("nothing", None)],
)  # fmt: skip
def test_a_column_shows_what_its_source_names(source: str, value: object) -> None:
    assert column_value(source, epoch(3)) == value


@pytest.mark.behaviour("fork-has-parents-best-to-beat")
@pytest.mark.parametrize(
    ("score", "epoch_of", "rows", "said"),
    [
        (0.929, 20, [21, 22], "best 0.929 (parent, ep 20) · patience 2/10"),
        (0.929, 20, [], "best 0.929 (parent, ep 20) · patience 0/10"),
        (-1.5, 3, [21], "best -1.5 (parent, ep 3) · patience 18/10"),
        (None, 0, [21], ""),  # the parent has its best checkpoint no more
    ],
)
def test_what_a_fork_has_to_beat_is_its_parents_best(
    score: float | None, epoch_of: int, rows: list[int], said: str
) -> None:
    begun = msgspec.structs.replace(
        started(1, 20 * STEPS_PER_EPOCH), resumed_epoch=20, patience=10, parent="p", best_score=score,
        best_epoch=epoch_of,
    )  # fmt: skip
    history = History()
    history.extend([begun, *(row(number, 1) for number in rows)])
    assert history.inherited == said
    history.add(row(23, 1, best=True))
    assert history.inherited == ""
    assert (history.to_beat.score, history.to_beat.epoch) == (2.3, 23)  # type: ignore[union-attr]
