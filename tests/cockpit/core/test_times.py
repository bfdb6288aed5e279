"""Moments are told in one zone, and time that has passed is counted in seconds: also over a change of the clocks."""

import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import cockpit
from cockpit.core.plot.axis import x_ticks
from cockpit.core.times import clock, date_and_clock, first_of_month, midnight, zone
from engines.runs.spending import Span, seconds_spent, usd_since, usd_spent

# In Berlin the clocks went back on 2026-10-25, from 03:00 CEST to 02:00 CET, which was 01:00 in Greenwich.
CHANGE = 1_792_890_000.0
HOUR = 3600.0


@pytest.fixture(autouse=True)
def _berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.behaviour("times-stored-seconds-utc")
def test_one_module_alone_turns_moments_into_words() -> None:
    """So that no screen tells another zone than the others."""
    said = re.compile(r"strftime|localtime|fromtimestamp|\bgmtime|ctime\(|\bisoformat")
    package = Path(cockpit.__file__).parent
    found = [str(file.relative_to(package)) for file in package.rglob("*.py") if said.search(file.read_text())]
    assert found == ["core/times.py"]


@pytest.mark.behaviour("times-stored-seconds-utc")
def test_the_same_time_of_day_twice_is_told_apart_by_the_zone() -> None:
    before, after = CHANGE - HOUR / 2, CHANGE + HOUR / 2
    assert date_and_clock(before) == "2026-10-25 02:30:00 CEST"
    assert date_and_clock(after) == "2026-10-25 02:30:00 CET"
    assert (clock(before), zone(before)) == (clock(after), "CEST")
    assert zone(after) == "CET"


@pytest.mark.behaviour("times-stored-seconds-utc")
def test_a_run_over_the_change_took_as_long_as_it_took() -> None:
    spans = [Span(CHANGE - HOUR, CHANGE + 2 * HOUR, usd_per_hour=2.0)]
    assert (clock(spans[0].started), clock(CHANGE + 2 * HOUR)) == ("02:00:00", "04:00:00")  # two hours, by the clock
    assert seconds_spent(spans, now=CHANGE + 9 * HOUR) == 3 * HOUR
    assert usd_spent(spans, now=CHANGE + 9 * HOUR) == pytest.approx(6.0)


def test_the_day_of_the_change_has_25_hours() -> None:
    noon = CHANGE + 10 * HOUR
    assert date_and_clock(midnight(noon)) == "2026-10-25 00:00:00 CEST"
    assert date_and_clock(first_of_month(noon)) == "2026-10-01 00:00:00 CEST"
    assert noon - midnight(noon) == 13 * HOUR
    whole_day = [Span(CHANGE - 100 * HOUR, None, usd_per_hour=1.0)]
    assert usd_since(whole_day, midnight(noon), noon) == pytest.approx(13.0)


@pytest.mark.behaviour("times-stored-seconds-utc")
@pytest.mark.parametrize("change", [CHANGE, 1774746000.0])  # out of summer time, and into it on 29 March 2026
@pytest.mark.parametrize(("hours", "count", "grid"), [(4, 8, 0.5 * HOUR), (12, 6, 2 * HOUR), (30, 5, 6 * HOUR)])
def test_each_tick_of_the_clock_axis_is_round_by_the_clock_of_its_moment(
    change: float, hours: int, count: int, grid: float
) -> None:
    least = hours * HOUR / count
    ticks = x_ticks("clock", change - hours / 2 * HOUR, change + hours / 2 * HOUR, count)
    assert [words for _, words in ticks] == [clock(at)[:5] for at, _ in ticks]
    minutes = [int(words[:2]) * 60 + int(words[3:]) for _, words in ticks]
    assert {minute % round(grid / 60) for minute in minutes} == {0}
    assert all(later - earlier >= least for (earlier, _), (later, _) in pairwise(ticks))
    assert len(ticks) >= count - 2
