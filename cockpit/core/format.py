"""Numbers as a person reads them: durations, ages, money, counts, sizes, and floats that fit a column."""

from __future__ import annotations

import math
import re

_EXPONENT = re.compile(r"e\+?(-?)0*(\d)")
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


def count(number: float) -> str:
    """`18,204`."""
    return f"{number:,.0f}"


def rate(per_second: float, unit: str) -> str:
    """`5,310 windows/s`, `2.4 steps/s`; slower than one in two seconds as time each: `12 s/step`."""
    if per_second >= 100:
        return f"{per_second:,.0f} {unit}/s"
    if per_second >= 0.5:
        return f"{per_second:.1f} {unit}/s"
    return f"{1 / per_second:,.0f} s/{unit.removesuffix('s')}" if per_second > 0 else f"0 {unit}/s"


def size(number: float) -> str:
    """Bytes in decimal units: `14.2 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(number) < 999.95 or unit == "GB":
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:,.1f} {unit}"
        number /= 1000
    raise AssertionError("unreachable")


def percent(fraction: float) -> str:
    """`27 %`; 100 only when really done."""
    return f"{min(int(fraction * 100), 100)} %"


def number(value: float | None, spec: str = ".3f") -> str:
    """`value` by a Python format spec, exponents without padding (`1.0e-4`); None is `—`."""
    if value is None:
        return "—"
    try:
        return _EXPONENT.sub(r"e\1\2", format(value, spec))
    except (TypeError, ValueError):  # a spec from someone's log may be anything
        return str(value)


def fitted(value: float | None, spec: str, width: int) -> str:
    """`number(value, spec)` in at most `width` characters: first with fewer decimals, then with an exponent."""
    text = number(value, spec)
    if len(text) <= width or not isinstance(value, int | float) or not math.isfinite(value):
        return text
    for shorter in (*(f".{places}f" for places in (3, 2, 1, 0)), ".1e", ".0e"):
        text = number(value, shorter)
        if len(text) <= width:
            return text
    return text


_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(fraction: float, width: int) -> str:
    """The filled part of a bar `width` characters long, in eighths of one: `███▋`."""
    eighths = round(min(max(fraction, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")
