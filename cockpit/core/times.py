"""Moments as a person reads them: in one zone everywhere, the machine's own or `TZ`, and never without its name."""

from __future__ import annotations

import time


def zone(moment: float | None = None) -> str:
    """`CET`: the name of the zone as it was at `moment` (Unix seconds), or is now; summer time has another."""
    return time.strftime("%Z", time.localtime(moment))


def clock(moment: float) -> str:
    """`20:41:07`, for columns whose heading names the zone."""
    return time.strftime("%H:%M:%S", time.localtime(moment))


def date_and_clock(moment: float) -> str:
    """`2026-11-27 20:41:07 CET`, complete in itself."""
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(moment))


def midnight(moment: float) -> float:
    """When the day of `moment` began, in the zone of all other moments."""
    day = time.localtime(moment)
    return time.mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))


def first_of_month(moment: float) -> float:
    """When the month of `moment` began."""
    day = time.localtime(moment)
    return time.mktime((day.tm_year, day.tm_mon, 1, 0, 0, 0, 0, 0, -1))
