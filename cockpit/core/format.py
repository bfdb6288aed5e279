"""Numbers as a person reads them: counts, rates, shares, and floats that fit a column; amounts are in
`engines.basics.amounts`."""

from __future__ import annotations

import math
import re

_SPEC = re.compile(r"[<>=^]?[-+ ]?#?\d{0,2},?(\.\d{1,2})?[a-zA-Z%]?", re.ASCII)
"""A format of at most two digits of width and precision: more of them take gigabytes."""
_EXPONENT = re.compile(r"e\+?(-?)0*(\d)")


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


def percent(fraction: float) -> str:
    """`27 %`; 100 only when really done."""
    return f"{min(int(fraction * 100), 100)} %"


def is_format(spec: str) -> bool:
    """Whether `spec` is a format of a number, of bounded width."""
    return _SPEC.fullmatch(spec) is not None


def number(value: float | None, spec: str = ".3f") -> str:
    """`value` by a Python format spec, exponents without padding (`1.0e-4`); None is `—`.

    Of a spec from someone's log that is none, or asks for more than two digits of width, the value is as Python has it.
    """
    if value is None:
        return "—"
    if not is_format(spec):
        return str(value)
    try:
        return _EXPONENT.sub(r"e\1\2", format(value, spec))
    except (TypeError, ValueError):
        return str(value)


def fitted(value: float | None, spec: str, width: int) -> str:
    """`number(value, spec)` in at most `width` characters: fewer decimals where two digits are left, else an exponent.

    For `0.000043` five characters have no better word than `4e-5`: `0.000` would say that it is nothing.
    """
    text = number(value, spec)
    if not isinstance(value, int | float) or not math.isfinite(value):
        return text
    if len(text) <= width and (value == 0 or set(text) - set("-0.")):
        return text
    decimals = [f".{places}f" for places in (3, 2, 1, 0) if abs(value) >= 10.0 ** (1 - places)]
    for shorter in (*decimals, ".2e", ".1e", ".0e"):
        text = number(value, shorter)
        if len(text) <= width:
            return text
    return text


FOUR_DIGITS = 7
"""Characters that they take."""


def four_digits(value: float) -> str:
    """`value` in at most seven characters, right-aligned: as many digits from value to value, where it has them."""
    size = abs(value)
    spec = ".2e" if 0 < size < 0.01 else "#.4g" if size < 1000 and not value.is_integer() else ".4g"
    return fitted(value, spec, FOUR_DIGITS).rjust(FOUR_DIGITS)


_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(fraction: float, width: int) -> str:
    """The filled part of a bar `width` characters long, in eighths of one: `███▋`."""
    eighths = round(min(max(fraction, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")
