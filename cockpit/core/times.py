"""Moments as a person reads them: in one zone everywhere, the machine's own or `TZ`, and never without its name."""

from __future__ import annotations

import time


def zone(moment: float | None = None) -> str:
    """`CET`: the name of the zone as it was at `moment` (Unix seconds), or is now; summer time has another."""
    return _told("%Z", moment)


def clock(moment: float) -> str:
    """`20:41:07`, for columns whose heading names the zone."""
    return _told("%H:%M:%S", moment)


def minute(moment: float) -> str:
    """`20:41`."""
    return _told("%H:%M", moment)


def day(moment: float) -> str:
    """`27 Nov`."""
    return _told("%d %b", moment).lstrip("0")


def seconds_east(moment: float) -> int:
    """What the zone's clocks are ahead of UTC at `moment`."""
    return time.localtime(moment).tm_gmtoff


def date(moment: float) -> str:
    """`2026-11-27`."""
    return _told("%Y-%m-%d", moment)


def date_and_clock(moment: float) -> str:
    """`2026-11-27 20:41:07 CET`, complete in itself."""
    return _told("%Y-%m-%d %H:%M:%S %Z", moment)


def _told(form: str, moment: float | None) -> str:
    """`?` for what is no moment: a damaged record may hold any number."""
    try:
        return time.strftime(form, time.localtime(moment))
    except (OverflowError, ValueError, OSError):
        return "?"


def midnight(moment: float) -> float:
    """When the day of `moment` began, in the zone of all other moments."""
    day = time.localtime(moment)
    return time.mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))


def first_of_month(moment: float) -> float:
    """When the month of `moment` began."""
    day = time.localtime(moment)
    return time.mktime((day.tm_year, day.tm_mon, 1, 0, 0, 0, 0, 0, -1))
