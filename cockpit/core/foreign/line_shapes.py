"""Lines read fast: a program prints the same words again and again, and only their numbers change.

What a line says is found once for its shape, which is the line without its numbers; a log of 100,000 lines has few.
`console_line.read_line` is the reference.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cockpit.core.foreign.console_line import MULTIPLES, row_at, said
from cockpit.core.foreign.line_start import cleaned
from cockpit.core.foreign.rows import Row

LONGEST = 4096
"""Characters of a line that may be printed for people; a longer one is a dump of something."""
MOST_SHAPES = 2000
NOTHING = Row({})
STAND_IN = 7310000
"""Stands for the first number of a line while its shape is read, the next one for the second; it is written nowhere."""
_NUMBER = re.compile(
    r"(?<![\w.@])(\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)"
)
_STOOD_IN = re.compile(
    r"(?P<sign>[+-]?)\.?7,?31(?P<thousands>\d),?(?P<ones>\d{3})(?:\.5?)?(?:[eE][+-]?5)?(?P<multiple>[kKMB]?)"
)
_DIGITS = re.compile(r"\d+")
_NOT_FINITE = re.compile(r"[:= +-](?:nan|inf)", re.IGNORECASE)


class _Which(NamedTuple):
    """One of a line's numbers."""

    place: int
    factor: float

    def of(self, numbers: Sequence[str]) -> float:
        return float(numbers[self.place].replace(",", "")) * self.factor


class _Plan(NamedTuple):
    """Which of its numbers a line of some shape gives under which name, and which of them are its place."""

    values: Mapping[str, _Which]
    step: _Which | None
    epoch: _Which | None

    def row(self, numbers: Sequence[str], time: float) -> Row:
        step, epoch = (math.nan if which is None else which.of(numbers) for which in (self.step, self.epoch))
        return row_at({name: which.of(numbers) for name, which in self.values.items()}, step, epoch, time)


class LineShapes:
    """Reads lines by the shapes of those it has read before."""

    def __init__(self) -> None:
        self._plans: dict[tuple[object, ...], _Plan | None] = {}
        """None of a shape whose numbers are parts of words too."""

    def read(self, line: str) -> Row:
        """As `read_line`; nothing of a line that is too long to be one for people."""
        if len(line) > LONGEST:
            return NOTHING
        clean = cleaned(line)
        return clean.of_rank(self._read(clean.text, clean.time))

    def _read(self, text: str, time: float) -> Row:
        if _NOT_FINITE.search(text):
            return said(text).row(time)
        between, numbers = (parts := _NUMBER.split(text))[::2], parts[1::2]
        if not numbers:
            return NOTHING._replace(time=time)
        shape = (*between, *map(_form, numbers))
        if shape not in self._plans:
            if len(self._plans) >= MOST_SHAPES:
                self._plans.clear()
            self._plans[shape] = _plan(between, numbers)
        plan = self._plans[shape]
        return said(text).row(time) if plan is None else plan.row(numbers, time)


def _form(number: str) -> str:
    """Of `1.25e-3` `0.0e-0`: what it is, whatever its digits."""
    return "0" if number.isdigit() else _DIGITS.sub("0", number.replace(",", ",,"))


def _stand_in(place: int, number: str) -> str:
    """A number of the same form."""
    if "," in number:
        return f"{STAND_IN + place:,}{'.5' if '.' in number else ''}"
    first = _DIGITS.sub(str(STAND_IN + place), number, count=1)
    end = first.index(str(STAND_IN + place)) + 7
    return first[:end] + _DIGITS.sub("5", first[end:])


def _plan(between: Sequence[str], numbers: Sequence[str]) -> _Plan | None:
    """Found by reading the line with stand-ins for its numbers."""
    stand_ins = [*map(_stand_in, range(len(numbers)), numbers), ""]
    found = said("".join(part for pair in zip(between, stand_ins, strict=True) for part in pair))
    told = {text: _STOOD_IN.fullmatch(text) for text in (*found.numbers.values(), found.step, found.epoch) if text}
    if any(map(_STOOD_IN.search, found.numbers)) or None in told.values():  # `epoch3` is one word
        return None
    which = {text: _which(one) for text, one in told.items() if one is not None}
    values = {name: which[text] for name, text in found.numbers.items()}
    return _Plan(values, which.get(found.step), which.get(found.epoch))


def _which(stand_in: re.Match[str]) -> _Which:
    sign = -1.0 if stand_in["sign"] == "-" else 1.0
    return _Which(int(stand_in["thousands"] + stand_in["ones"]), sign * MULTIPLES.get(stand_in["multiple"], 1.0))
