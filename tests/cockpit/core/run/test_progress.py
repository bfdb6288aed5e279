"""How far a run is, and when it will be done."""

from __future__ import annotations

import pytest

from cockpit.core.run import progress
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.runs.history import History


def started(*, attempt: int = 1, epochs: int = 10, resumed: int = 0, time: float = 100.0) -> ev.RunStarted:
    return ev.RunStarted(
        project="p", device="cpu", epochs=epochs, steps_per_epoch=50, columns=[], stages=[], resumed_step=resumed,
        attempt=attempt, time=time,
    )  # fmt: skip


def epoch(number: int, seconds: float, attempt: int = 1) -> ev.Epoch:
    return ev.Epoch(
        epoch=number, step=number * 50, stage="s", train={}, validation={}, score=None, lr=0.1, best=False, weights={},
        seconds=seconds, attempt=attempt,
    )  # fmt: skip


def history(*events: ev.Event) -> History:
    gathered = History()
    gathered.extend(events)
    return gathered


def test_epochs_in_all_follow_a_persons_edit() -> None:
    longer = cmd.SetEpochs(attempt=1, epochs=30)
    answer = ev.CommandAnswer(command=longer, state="applied", step=10, attempt=1)
    seen = ev.CommandAnswer(command=longer, state="seen", step=10, attempt=1)
    assert History().planned == 0
    assert history(started()).planned == 10
    assert history(started(), seen).planned == 10
    assert history(started(), seen, answer).planned == 30
    loading = ev.Phase(phase="loading", step=0, attempt=2)
    assert history(started(), answer, loading).planned == 30
    assert history(started(), answer, loading, started(attempt=2)).planned == 10


def test_how_far_it_is() -> None:
    assert progress.fraction_done(history(started()), 125) == 125 / 500
    assert progress.fraction_done(history(started()), 9999) == 1.0
    assert progress.fraction_done(history(ev.Progress(done=3, total=12, unit="sessions")), 0) == 0.25
    assert progress.fraction_done(history(ev.Progress(done=0, total=0, unit="sessions")), 0) == 0.0
    assert progress.fraction_done(History(), 7) == 0.0


def test_the_time_left_comes_from_the_recent_epochs_of_this_attempt() -> None:
    slow = [epoch(number, 100.0) for number in (1, 2)]
    fast = [epoch(number, 10.0, attempt=2) for number in (3, 4)]
    resumed = started(attempt=2, resumed=100)
    # 10 epochs of 50 steps; 225 steps done leave 5.5 epochs
    assert progress.seconds_left(history(started(), *slow), 225, 0.0, 0.0) == pytest.approx(550.0)
    assert progress.seconds_left(history(started(), *slow, resumed), 225, 0.0, 0.0) == pytest.approx(550.0)
    assert progress.seconds_left(history(started(), *slow, resumed, *fast), 225, 0.0, 0.0) == pytest.approx(55.0)


def test_before_the_first_epoch_it_comes_from_the_steps() -> None:
    assert progress.seconds_left(history(started(time=100.0)), 2, 104.0, 0.0) is None
    assert progress.seconds_left(history(started(time=100.0)), 20, 140.0, 0.0) == pytest.approx(480 * 2.0)


def phase(name: ev.PhaseName, time: float, attempt: int = 1) -> ev.Phase:
    return ev.Phase(phase=name, time=time, attempt=attempt)


@pytest.mark.behaviour("pauses-out-of-rates")
def test_a_pause_is_no_time_of_steps() -> None:
    """Neither one that is over nor one that lasts, nor the time from one attempt to the next."""
    paused = history(started(time=100.0), phase("paused", 120.0), phase("training", 1120.0))
    assert progress.seconds_left(paused, 20, 1140.0, 0.0) == pytest.approx(480 * 2.0)
    again = history(started(time=100.0), phase("paused", 120.0))
    assert [again.stepping(100.0, until) for until in (110.0, 120.0, 5000.0)] == [10.0, 20.0, 20.0]
    resumed = history(started(), phase("training", 130.0), started(attempt=2, time=9000.0, resumed=10))
    assert resumed.stepping(120.0, 9010.0) == pytest.approx(10.0 + 10.0)
    assert resumed.stepping(9000.0, 9010.0) == 10.0


def test_nothing_is_left_of_what_is_done() -> None:
    assert progress.seconds_left(history(started(), epoch(10, 5.0)), 500, 0.0, 0.0) is None


def test_an_early_stop_leaves_the_epoch_it_was_asked_in() -> None:
    """And nothing while the report is made; a resume goes on to the end again."""
    asked = ev.CommandAnswer(command=cmd.StopEarly(attempt=1), state="applied", step=110, epoch=2, attempt=1)
    before = history(started(), epoch(1, 100.0), epoch(2, 100.0), asked)
    assert progress.seconds_left(before, 125, 0.0, 0.0) == pytest.approx(50.0)
    assert progress.seconds_left(before, 150, 0.0, 0.0) is None
    resumed = history(started(), epoch(1, 100.0), epoch(2, 100.0), asked, started(attempt=2, resumed=150))
    assert progress.seconds_left(resumed, 150, 0.0, 0.0) == pytest.approx(700.0)


def test_a_tasks_time_left_comes_from_its_progress() -> None:
    told = ev.Progress(done=3, total=12, unit="sessions", time=130.0)
    assert progress.seconds_left(history(told), 0, 999.0, 100.0) == pytest.approx(90.0)
    assert progress.seconds_left(History(), 0, 999.0, 100.0) is None
