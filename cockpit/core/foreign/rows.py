"""What a line of any log says: where it stands (step, epoch, time) and the numbers it gives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

STEP_NAMES = frozenset({"step", "global_step", "_step", "iteration", "iter", "trainer/global_step"})
EPOCH_NAMES = frozenset({"epoch", "_epoch"})
TIME_NAMES = frozenset({"time", "timestamp", "_timestamp", "wall_time"})
GROUP_NAMES = frozenset({"seed", "trial", "fold"})
"""Columns that tell several runs in one file apart: each of their values has series of its own."""
EARLIEST_TIME = 1e8
"""Unix seconds, 1973: a smaller `time` is a duration, and a metric like any other."""
NOT_FINITE = frozenset({"nan", "inf", "infinity"})


@dataclass(frozen=True)
class Row:
    """Numbers logged together. NaN: the log does not say."""

    values: Mapping[str, float]
    step: float = math.nan
    epoch: float = math.nan
    time: float = math.nan


def as_number(value: object) -> float | None:
    """`value` as a float, None where it is none; also of the words that some writers use for NaN and infinity."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if isinstance(value, str) and value.strip().lstrip("+-").lower() in NOT_FINITE:
        return float(value)
    return None


def row_of(record: Mapping[str, Any]) -> Row:
    """The row that a record of a log means: nested names joined by dots, text and lists left out.

    A null is no value, unless the record names it in `nonfinite` as our own logs do.
    """
    values: dict[str, float] = {}
    place: dict[str, float] = {}
    groups: list[str] = []
    for name, value in _flat(record):
        number = as_number(value)
        if name in GROUP_NAMES and isinstance(value, int | float | str):
            groups.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}")
        elif number is None:
            continue
        elif (channel := _channel(name, number)) is not None:
            place[channel] = number
        else:
            values[name] = number
    if isinstance(nonfinite := record.get("nonfinite"), list):
        values |= {name: math.nan for name in nonfinite if isinstance(name, str)}
    if groups:
        values = {f"{name} [{', '.join(groups)}]": value for name, value in values.items()}
    return Row(values, **place)


def _flat(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        name = f"{prefix}{str(key).strip()}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


def _channel(name: str, number: float) -> str | None:
    """Which of a row's places a number is, None for a metric."""
    if name in STEP_NAMES:
        return "step"
    if name in EPOCH_NAMES:
        return "epoch"
    return "time" if name in TIME_NAMES and number > EARLIEST_TIME else None
