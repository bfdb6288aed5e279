import math

import pytest

from cockpit.core import format as fmt


@pytest.mark.parametrize(
    ("seconds", "long", "short"),
    [
        (-3, "0 s", "0 s"),
        (59, "59 s", "59 s"),
        (60, "1 m 00 s", "1 m"),
        (245, "4 m 05 s", "4 m"),
        (3600, "1 h 00 m", "1.0 h"),
        (4350, "1 h 12 m", "1.2 h"),
        (86399, "23 h 59 m", "23 h"),
        (86400 * 3 + 3600 * 4 + 5, "3 d 4 h", "3.1 d"),
        (86400 * 40, "40 d 0 h", "40 d"),
    ],
)
def test_durations(seconds: float, long: str, short: str) -> None:
    assert fmt.duration(seconds) == long
    assert fmt.short_duration(seconds) == short


def test_a_short_duration_never_needs_more_than_five_characters() -> None:
    seconds = [second * step for step in (1, 61, 3599, 3601, 86399) for second in range(200)]
    assert max(len(fmt.short_duration(value)) for value in seconds) == 5


def test_money_counts_rates_sizes() -> None:
    assert [fmt.money(value) for value in (0, 1.066, 999.99, 1240.4)] == ["$0.00", "$1.07", "$999.99", "$1,240"]
    assert fmt.count(18204.0) == "18,204"
    assert [fmt.rate(value, "steps") for value in (5310.2, 2.44, 1 / 12, 0)] == [
        "5,310 steps/s", "2.4 steps/s", "12 s/step", "0 steps/s",
    ]  # fmt: skip
    assert [fmt.size(value) for value in (12, 14_200_000, 4.5e12)] == ["12 B", "14.2 MB", "4,500.0 GB"]


def test_percent_is_a_hundred_only_when_done() -> None:
    assert [fmt.percent(value) for value in (0, 0.273, 0.9999, 1.0, 1.2)] == ["0 %", "27 %", "99 %", "100 %", "100 %"]


@pytest.mark.parametrize(
    ("value", "spec", "text"),
    [
        (0.5, ".3f", "0.500"),
        (1e-4, ".1e", "1.0e-4"),
        (1e10, ".1e", "1.0e10"),
        (None, ".3f", "—"),
        (math.nan, ".3f", "nan"),
        (0.5, "no such spec", "0.5"),
    ],
)
def test_numbers_follow_their_format(value: float | None, spec: str, text: str) -> None:
    assert fmt.number(value, spec) == text


@pytest.mark.parametrize("value", [0.1234, 12.3456, 1234.567, 123456.7, 1.5e20, -0.1234, -1.5e20, 7e-9])
def test_a_fitted_number_keeps_its_width_and_its_value(value: float) -> None:
    text = fmt.fitted(value, ".3f", 5)
    assert len(text) <= 5 + (value < -1e9)  # -1.5e20 cannot be said in five characters without lying by an order
    assert float(text) == pytest.approx(value, rel=0.34, abs=0.006)
