import math

import pytest

from cockpit.core import format as fmt


def test_counts_and_rates() -> None:
    assert fmt.count(18204.0) == "18,204"
    assert [fmt.rate(value, "steps") for value in (5310.2, 2.44, 1 / 12, 0)] == [
        "5,310 steps/s", "2.4 steps/s", "12 s/step", "0 steps/s",
    ]  # fmt: skip


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


def test_what_is_not_nothing_is_not_told_as_nothing() -> None:
    values = (0.00043, 0.0001, -0.0001, 0.0, 0.0006)
    assert [fmt.fitted(value, ".3f", 5) for value in values] == ["4e-4", "1e-4", "-1e-4", "0.000", "0.001"]


def test_four_digits_stand_in_as_many_cells_and_nothing_small_is_told_as_nothing() -> None:
    told = [fmt.four_digits(value) for value in (0.5, -12.3456, 3.0, 0.003926, 4.321e-5, 1.5e20, math.nan)]
    assert told == [" 0.5000", " -12.35", "      3", "3.93e-3", "4.32e-5", " 1.5e20", "    nan"]
    small = [fmt.four_digits(value) for value in (0.003961, 0.00396, 0.004, -0.00396, 1e-6)]
    assert small == ["3.96e-3", "3.96e-3", "4.00e-3", "-4.0e-3", "1.00e-6"], "a digit that is 0 changes nothing"


@pytest.mark.behaviour("formats-are-bounded")
@pytest.mark.parametrize(
    "spec", [".999999999f", "999999999d", "0999999999f", ".٩f", "99999999s", "{0}", "!r", ".1f" * 50]
)
def test_a_format_from_a_log_takes_no_memory(spec: str) -> None:
    assert fmt.number(0.5, spec) == "0.5"


@pytest.mark.parametrize(
    ("spec", "written"), [(".3f", "0.500"), ("+.1%", "+50.0%"), ("6.2f", "  0.50"), (",.1f", "0.5")]
)
def test_formats_in_use_stay(spec: str, written: str) -> None:
    assert fmt.number(0.5, spec) == written
