"""A number as it is typed, a key at a time: `0.5`, `1e-3`."""

from __future__ import annotations

import math
import re

DIGITS = frozenset("0123456789.")
SIGN = "-"
EXPONENT = frozenset("e+-")
LONGEST = 8
"""Characters of it."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def typed_number(text: str) -> float | None:
    """A finite number as people write one, or None: what Python would read as well (`1_0`, `nan`) is a slip here."""
    value = float(text) if _NUMBER.fullmatch(text.strip()) else math.inf
    return value if math.isfinite(value) else None


def typed_on(typed: str, character: str | None) -> str | None:
    """`typed` with one more character; None for one that belongs to no number, or not there.

    A sign and an exponent belong to one: left out of what is typed, `1e-3` would become 13.
    """
    if character is None or not (character in DIGITS or character in (EXPONENT if typed else SIGN)):
        return None
    return (typed + character)[:LONGEST]
