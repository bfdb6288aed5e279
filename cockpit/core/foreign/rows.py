"""What a line of any log says: where it stands (step, epoch, time) and the numbers it gives."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

PLACES = {
    **dict.fromkeys(("step", "global_step", "_step", "iteration", "iter", "trainer/global_step"), "step"),
    **dict.fromkeys(("epoch", "_epoch"), "epoch"),
    **dict.fromkeys(("time", "timestamp", "_timestamp", "wall_time"), "time"),
}
"""What the names mean that say where a row stands."""
GROUP_NAMES = frozenset({"seed", "trial", "fold"})
"""Columns that tell several runs in one file apart: each of their values has series of its own."""
EARLIEST_TIME = 1e8
"""Unix seconds, 1973: a smaller `time` is a duration, and a metric like any other."""
NOT_FINITE = re.compile(r"\s*[+-]?(nan|inf|infinity)\s*", re.IGNORECASE | re.ASCII)
LARGEST_PLACE = 2.0**53
"""Beyond it a step is no count any more."""


class Row(NamedTuple):
    """Numbers logged together. NaN: the log does not say."""

    values: Mapping[str, float]
    step: float = math.nan
    epoch: float = math.nan
    time: float = math.nan


def placed(row: Row) -> Row:
    """`row` with NaN for a place that can be none."""
    step, epoch, time = (place if abs(place) < LARGEST_PLACE else math.nan for place in row[1:])
    return Row(row.values, step, epoch, time)


def as_number(value: object) -> float | None:
    """`value` as a float, None where it is none; also of the words that some writers use for NaN and infinity."""
    if type(value) is float:  # nearly all are: a million numbers in 0.2 s instead of 0.6
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return float(value) if isinstance(value, str) and NOT_FINITE.fullmatch(value) else None


def row_of(record: Mapping[str, Any]) -> Row:
    """The row that a record of a log means: nested names joined by dots, text and lists left out.

    A null is no value, unless the record names it in `nonfinite` as our own logs do.
    """
    values: dict[str, float] = {}
    places: dict[str, float] = {}
    groups: list[str] = []
    for name, value in _flat(record).items():
        if name in GROUP_NAMES and isinstance(value, int | float | str):
            groups.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}")
        elif (number := as_number(value)) is None:
            continue
        elif (place := PLACES.get(name)) is not None and (place != "time" or number > EARLIEST_TIME):
            places[place] = number
        else:
            values[name] = number
    if isinstance(nonfinite := record.get("nonfinite"), list):
        values |= {name: math.nan for name in nonfinite if isinstance(name, str)}
    if groups:
        values = {f"{name} [{', '.join(groups)}]": value for name, value in values.items()}
    return Row(values, **places)


def _flat(record: Mapping[str, Any], prefix: str = "") -> Mapping[str, Any]:
    if not prefix and not any(isinstance(value, dict) for value in record.values()):
        return record
    flat: dict[str, Any] = {}
    for key, value in record.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
