"""What a line of any log says: where it stands (step, epoch, time) and the numbers it gives."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from cockpit.core.foreign.places import EARLIEST_TIME, Kind, kind_and_rank, moment, seconds
from engines.contract.metric_names import is_training, is_validation

GROUP_NAMES = frozenset({"seed", "trial", "fold"})
"""Columns that tell several runs in one file apart: each of their values has series of its own."""
OF_THE_PLAN = frozenset({"total_steps", "max_steps", "percentage"})
"""Numbers that say how long a training will be: no metrics."""
SPLIT_NAMES = frozenset({"split", "mode", "phase", "subset", "stage", "set", "dataset", "partition", "type"})
"""Columns that may say which data a row is of; its metrics are then called `val loss`."""
NUMBER = re.compile(r"\s*[+-]?(nan|inf|infinity|(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)\s*", re.IGNORECASE | re.ASCII)
LARGEST_PLACE = 2.0**53
"""Beyond it a step is no count any more."""


class Row(NamedTuple):
    """Numbers logged together. NaN: the log does not say."""

    values: Mapping[str, float]
    step: float = math.nan
    epoch: float = math.nan
    time: float = math.nan
    group: str = ""
    """`seed 3`: which of several runs in one file it is of."""


def plausible(place: float) -> float:
    """`place`, NaN where it can be none."""
    return place if abs(place) < LARGEST_PLACE else math.nan


def as_number(value: object) -> float | None:
    """`value` as a float, None where it is none; some writers put numbers, NaN and infinity into words."""
    if type(value) is float:  # nearly all are: a million numbers in 0.2 s instead of 0.6
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return float(value) if isinstance(value, str) and NUMBER.fullmatch(value) else None


def row_of(record: Mapping[str, Any]) -> Row:
    """The row that a record of a log means: nested names joined by dots, text and lists left out.

    A null is no value, unless the record names it in `nonfinite` as our own logs do.
    """
    values: dict[str, float] = {}
    places: dict[Kind, tuple[int, str, float]] = {}
    groups: list[str] = []
    split = ""
    for name, value in flat(record).items():
        if name in GROUP_NAMES and isinstance(value, int | float | str):
            groups.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}")
            continue
        if name.lower() in SPLIT_NAMES and isinstance(value, str):
            split = value if is_training(value) or is_validation(value) else split
            continue
        if name.lower() in OF_THE_PLAN:
            continue
        told = kind_and_rank(name)
        number = _moment(value) if told and told[0] == "time" else as_number(value)
        if number is None:
            continue
        if told is None or (told[0] == "time" and number <= EARLIEST_TIME):
            values[name] = number
            continue
        kind, rank = told
        found = (rank, name, number)
        if kind in places:  # the other one is a metric
            found, (_, name, number) = sorted((found, places[kind]))
            values[name] = number
        places[kind] = found
    if isinstance(nonfinite := record.get("nonfinite"), list):
        values |= {name: math.nan for name in nonfinite if isinstance(name, str)}
    if split:
        values = {f"{split} {name}": value for name, value in values.items()}
    group = ", ".join(groups)
    if group:
        values = {f"{name} [{group}]": value for name, value in values.items()}
    return Row(
        values,
        **{kind: number for kind, (_, _, number) in places.items()},
        group=", ".join(filter(None, (split, group))),
    )


def _moment(value: object) -> float | None:
    """Unix seconds from a number of any unit, or from words."""
    if (number := as_number(value)) is not None:
        return seconds(number)
    return moment(value) if isinstance(value, str) else None


def flat(record: Mapping[str, Any], prefix: str = "") -> Mapping[str, Any]:
    """Nested names joined by dots."""
    if not prefix and dict not in map(type, record.values()):
        return record
    found: dict[str, Any] = {}
    for key, value in record.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found
