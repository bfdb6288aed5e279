import pytest

from cockpit.core.runs import cost
from cockpit.core.runs.cost import Span
from engines.contract import commands as cmd
from engines.contract import events as ev
from engines.contract.history import History
from engines.contract.rundir import Attempt, End, ProcessMark

MARK = ProcessMark(1, 0.0)


def attempt(number: int, started: float, ended: float | None = None, price: float = 2.0) -> Attempt:
    end = None if ended is None else End(reason="stopped", time=ended)
    return Attempt(number=number, started=started, supervisor=MARK, usd_per_hour=price, ended=end)


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


def test_attempts_are_paid_for_while_they_ran() -> None:
    attempts = [attempt(1, 1000.0, 4600.0), attempt(2, 10_000.0), attempt(3, 20_000.0)]
    spans = cost.spans_of(attempts, {2: 11_800.0}, live=True)
    # an hour, half an hour until the last event of an attempt that was lost, and what runs since 20,000
    assert spans == (Span(1000.0, 4600.0, 2.0), Span(10_000.0, 11_800.0, 2.0), Span(20_000.0, None, 2.0))
    assert cost.seconds_spent(spans, 20_900.0) == 3600 + 1800 + 900
    assert cost.usd_spent(spans, 20_900.0) == pytest.approx(2.0 + 1.0 + 0.5)


def test_a_lost_run_costs_nothing_more() -> None:
    spans = cost.spans_of([attempt(1, 1000.0)], {1: 1600.0}, live=False)
    assert cost.seconds_spent(spans, 1e9) == 600
    assert cost.seconds_spent(cost.spans_of([attempt(1, 1000.0)], {}, live=False), 1e9) == 0


def test_without_a_price_there_is_no_cost() -> None:
    assert cost.usd_spent(cost.spans_of([attempt(1, 0.0, 3600.0, price=0.0)], {}, live=False), 1e9) is None
    assert cost.usd_spent((), 1e9) is None


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
    assert cost.fraction_done(history(started()), 125) == 125 / 500
    assert cost.fraction_done(history(started()), 9999) == 1.0
    assert cost.fraction_done(history(ev.Progress(done=3, total=12, unit="sessions")), 0) == 0.25
    assert cost.fraction_done(history(ev.Progress(done=0, total=0, unit="sessions")), 0) == 0.0
    assert cost.fraction_done(History(), 7) == 0.0


def test_the_time_left_comes_from_the_recent_epochs_of_this_attempt() -> None:
    slow = [epoch(number, 100.0) for number in (1, 2)]
    fast = [epoch(number, 10.0, attempt=2) for number in (3, 4)]
    resumed = started(attempt=2, resumed=100)
    # 10 epochs of 50 steps; 225 steps done leave 5.5 epochs
    assert cost.seconds_left(history(started(), *slow), 225, 0.0, 0.0) == pytest.approx(550.0)
    assert cost.seconds_left(history(started(), *slow, resumed), 225, 0.0, 0.0) == pytest.approx(550.0)
    assert cost.seconds_left(history(started(), *slow, resumed, *fast), 225, 0.0, 0.0) == pytest.approx(55.0)


def test_before_the_first_epoch_it_comes_from_the_steps() -> None:
    assert cost.seconds_left(history(started(time=100.0)), 2, 104.0, 0.0) is None
    assert cost.seconds_left(history(started(time=100.0)), 20, 140.0, 0.0) == pytest.approx(480 * 2.0)


def test_nothing_is_left_of_what_is_done() -> None:
    assert cost.seconds_left(history(started(), epoch(10, 5.0)), 500, 0.0, 0.0) is None


def test_an_early_stop_leaves_the_epoch_it_was_asked_in() -> None:
    """And nothing while the report is made; a resume goes on to the end again."""
    asked = ev.CommandAnswer(command=cmd.StopEarly(attempt=1), state="applied", step=110, epoch=2, attempt=1)
    before = history(started(), epoch(1, 100.0), epoch(2, 100.0), asked)
    assert cost.seconds_left(before, 125, 0.0, 0.0) == pytest.approx(50.0)
    assert cost.seconds_left(before, 150, 0.0, 0.0) is None
    resumed = history(started(), epoch(1, 100.0), epoch(2, 100.0), asked, started(attempt=2, resumed=150))
    assert cost.seconds_left(resumed, 150, 0.0, 0.0) == pytest.approx(700.0)


def test_a_tasks_time_left_comes_from_its_progress() -> None:
    progress = ev.Progress(done=3, total=12, unit="sessions", time=130.0)
    assert cost.seconds_left(history(progress), 0, 999.0, 100.0) == pytest.approx(90.0)
    assert cost.seconds_left(History(), 0, 999.0, 100.0) is None


def test_money_since_a_moment() -> None:
    spans = [Span(0.0, 3600.0, 9.0), Span(7200.0, 10800.0, 2.0), Span(14400.0, None, 4.0), Span(0.0, None, 0.0)]
    assert cost.usd_since(spans, 0.0, 18000.0) == 9.0 + 2.0 + 4.0 == cost.usd_spent(spans, 18000.0)
    assert cost.usd_since(spans, 9000.0, 18000.0) == 1.0 + 4.0
    assert cost.usd_since(spans, 20000.0, 18000.0) == 0.0
