"""Amounts as a user reads them, the same wherever they are shown: time, money, memory."""

from __future__ import annotations

import math

MINUTE, HOUR, DAY = 60, 3600, 86400
FOREVER = 100_000 * DAY
"""No run takes centuries: such a number comes from a damaged record."""


def duration(seconds: float) -> str:
    """`12 s`, `4 m 05 s`, `1 h 12 m`, `3 d 4 h`; `?` for what no duration can be."""
    if not seconds < FOREVER:
        return "?"
    whole = max(0, round(seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} m {whole % MINUTE:02d} s"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE:02d} m"
    return f"{whole // DAY} d {whole % DAY // HOUR} h"


def short_duration(seconds: float) -> str:
    """At most five characters, for columns: `12 s`, `26 m`, `1.8 h`, `14 h`, `3.2 d`, `40 d`; `?` for what is none."""
    if not seconds < FOREVER:
        return "?"
    whole = max(0.0, seconds)
    if whole < MINUTE:
        return f"{int(whole)} s"
    if whole < HOUR:
        return f"{int(whole / MINUTE)} m"
    unit, name = (HOUR, "h") if whole < DAY else (DAY, "d")
    amount = whole / unit
    return f"{math.floor(amount * 10) / 10:.1f} {name}" if amount < 10 else f"{int(amount)} {name}"


def money(usd: float) -> str:
    """`$1.07`; from a thousand on without cents: `$1,240`."""
    return f"${usd:,.2f}" if abs(usd) < 999.995 else f"${usd:,.0f}"


def size(number: float) -> str:
    """Bytes in decimal units: `14.2 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(number) < 999.95 or unit == "GB":
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:,.1f} {unit}"
        number /= 1000
    raise AssertionError("unreachable")
