"""What a run has cost: of every attempt the time that it ran, at its price."""

from __future__ import annotations

import pytest

from engines.contract.rundir import Attempt, End, ProcessMark
from engines.runs import spending
from engines.runs.spending import Span

MARK = ProcessMark(1, 0.0)


def attempt(number: int, started: float, ended: float | None = None, price: float = 2.0) -> Attempt:
    end = None if ended is None else End(reason="stopped", time=ended)
    return Attempt(number=number, started=started, supervisor=MARK, usd_per_hour=price, ended=end)


def test_attempts_are_paid_for_while_they_ran() -> None:
    attempts = [attempt(1, 1000.0, 4600.0), attempt(2, 10_000.0), attempt(3, 20_000.0)]
    spans = spending.spans_of(attempts, {2: 11_800.0}, live=True)
    # an hour, half an hour until the last event of an attempt that was lost, and what runs since 20,000
    assert spans == (Span(1000.0, 4600.0, 2.0), Span(10_000.0, 11_800.0, 2.0), Span(20_000.0, None, 2.0))
    assert spending.seconds_spent(spans, 20_900.0) == 3600 + 1800 + 900
    assert spending.usd_spent(spans, 20_900.0) == pytest.approx(2.0 + 1.0 + 0.5)


def test_a_lost_run_costs_nothing_more() -> None:
    spans = spending.spans_of([attempt(1, 1000.0)], {1: 1600.0}, live=False)
    assert spending.seconds_spent(spans, 1e9) == 600
    assert spending.spans_of([attempt(1, 1000.0)], {}, live=False) == (Span(1000.0, 1000.0, 2.0),)


def test_without_a_price_there_is_no_cost() -> None:
    assert spending.usd_spent(spending.spans_of([attempt(1, 0.0, 3600.0, price=0.0)], {}, live=False), 1e9) is None
    assert spending.usd_spent((), 1e9) is None


def test_money_since_a_moment() -> None:
    spans = [Span(0.0, 3600.0, 9.0), Span(7200.0, 10800.0, 2.0), Span(14400.0, None, 4.0), Span(0.0, None, 0.0)]
    assert spending.usd_since(spans, 0.0, 18000.0) == 9.0 + 2.0 + 4.0 == spending.usd_spent(spans, 18000.0)
    assert spending.usd_since(spans, 9000.0, 18000.0) == 1.0 + 4.0
    assert spending.usd_since(spans, 20000.0, 18000.0) == 0.0
