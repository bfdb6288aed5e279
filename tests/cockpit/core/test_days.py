"""Days and months begin at midnight of the zone, also where a clock change lies between."""

import time
from datetime import UTC, datetime

import pytest

from cockpit.core.times import first_of_month, midnight


@pytest.mark.parametrize(
    ("zone", "moment", "day", "month"),
    [
        ("UTC", (2026, 11, 27, 20, 40), (2026, 11, 27, 0), (2026, 11, 1, 0)),
        ("Europe/Berlin", (2026, 3, 29, 20, 0), (2026, 3, 28, 23), (2026, 2, 28, 23)),  # summer time began that day
        ("Europe/Berlin", (2026, 10, 25, 20, 0), (2026, 10, 24, 22), (2026, 9, 30, 22)),  # and ended that day
        ("America/New_York", (2026, 11, 1, 2, 0), (2026, 10, 31, 4), (2026, 10, 1, 4)),  # still October there
    ],
)
def test_days_and_months(
    monkeypatch: pytest.MonkeyPatch, zone: str, moment: tuple[int, ...], day: tuple[int, ...], month: tuple[int, ...]
) -> None:
    def utc(parts: tuple[int, ...]) -> float:
        return datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[arg-type,misc]

    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", zone)
            time.tzset()
            assert (midnight(utc(moment)), first_of_month(utc(moment))) == (utc(day), utc(month))
    finally:
        time.tzset()
