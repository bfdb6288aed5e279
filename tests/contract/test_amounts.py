import pytest

from engines.basics.amounts import duration, money, short_duration, size


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
    assert duration(seconds) == long
    assert short_duration(seconds) == short


def test_a_short_duration_never_needs_more_than_five_characters() -> None:
    seconds = [second * step for step in (1, 61, 3599, 3601, 86399) for second in range(200)]
    assert max(len(short_duration(value)) for value in seconds) == 5


def test_money_and_sizes() -> None:
    assert [money(value) for value in (0, 1.066, 999.99, 1240.4)] == ["$0.00", "$1.07", "$999.99", "$1,240"]
    assert [size(value) for value in (12, 14_200_000, 4.5e12)] == ["12 B", "14.2 MB", "4,500.0 GB"]
