"""The tables beside the charts: the best values, a row per metric, and the keys of the configs that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cockpit.core.compare.columns import Direction, direction
from cockpit.core.compare.drawn import Comparison, LineFacts
from cockpit.core.config.diff import ABSENT, KeyRow, diff, equal_keys, words
from cockpit.core.format import four_digits
from cockpit.core.series import Series
from cockpit.core.text import plain

BEST_MARK = "★"


@dataclass(frozen=True)
class Value:
    """What a run reached in a metric, where on its way, and between which values it went.

    `value` is the best where it is known what is better, else the last; NaN where nothing finite was logged.
    `epoch` (else `step`) is where it was reached, NaN where the log does not say.
    """

    value: float
    epoch: float
    step: float
    low: float
    high: float


@dataclass(frozen=True)
class MetricRow:
    """One metric of all runs, None where a run has none. `best` are the places of the runs that reached most."""

    name: str
    direction: Direction | None
    values: tuple[Value | None, ...]
    best: frozenset[int]


@dataclass(frozen=True)
class Cell:
    """Words of a table, whether they stand out, and words beside them that are left out where there is no room."""

    text: str
    strong: bool = False
    aside: str = ""
    tone: str = ""
    """`good`, `bad` or `quiet`, where it has one."""


@dataclass(frozen=True)
class Table:
    """Cells as words, not yet padded; `note` is a sentence under them, `instead` one in place of no rows."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str
    instead: str = ""


def metric_rows(compared: Comparison) -> list[MetricRow]:
    """A row a metric, in the order of `Comparison.metrics`."""
    return [_row(name, compared) for name in compared.metrics]


def _row(name: str, compared: Comparison) -> MetricRow:
    better = direction(name)
    values = tuple(
        _value(series[name], better, line if name == "score" else None) if name in series else None
        for line, series in zip(compared.lines, compared.series, strict=True)
    )
    reached = {place: one.value for place, one in enumerate(values) if one and np.isfinite(one.value)}
    best: frozenset[int] = frozenset()
    if better and len(reached) > 1:
        most = max(reached.values()) if better == "highest" else min(reached.values())
        best = frozenset(place for place, value in reached.items() if value == most)
    return MetricRow(name, better, values, best)


def _value(series: Series, better: Direction | None, scored: LineFacts | None) -> Value:
    """`scored` is the line whose score this is: the engine has marked its best epoch."""
    finite = np.flatnonzero(np.isfinite(series.value))
    if not len(finite):
        return Value(np.nan, np.nan, np.nan, np.nan, np.nan)
    told = series.value[finite]
    place = {None: -1, "highest": int(np.argmax(told)), "lowest": int(np.argmin(told))}[better]
    if scored is not None and scored.best is not None:
        marked = np.flatnonzero(series.epoch[finite] == scored.best)
        place = int(marked[-1]) if len(marked) else place
    at = finite[place]
    numbers = (series.value[at], series.epoch[at], series.step[at], told.min(), told.max())
    return Value(*map(float, numbers))


KINDS_OF_VALUES = f"{BEST_MARK} best run · losses and scores: best value, others: last"


def values_table(compared: Comparison) -> Table:
    """Best value and its epoch, marked where no run has a better one; else the last value."""
    rows = metric_rows(compared)
    cells = tuple(
        (Cell(plain(row.name)), *(_words(one, row, place) for place, one in enumerate(row.values))) for row in rows
    )
    notes = [KINDS_OF_VALUES if rows else "no metric logged yet"]
    if rows and _weighted_differently(compared):
        notes.append("loss weights differ: compare the losses of heads, or the score")
    if compared.several_projects:
        names = " and ".join(dict.fromkeys(line.project for line in compared.lines if line.project))
        notes.insert(0, f"{plain(names)} share {len(rows)} metric{'' if len(rows) == 1 else 's'}")
    return Table(("", *(line.name for line in compared.lines)), cells, " · ".join(notes))


def _weighted_differently(compared: Comparison) -> bool:
    """Whether the runs' losses, beside those of single heads, are sums with different weights."""
    weights = [
        {key: value for key, value in line.config.items() if key.startswith("loss_weights.")}
        for line in compared.lines if line.config is not None
    ]  # fmt: skip
    return any(one != weights[0] for one in weights)


def _words(one: Value | None, row: MetricRow, place: int) -> Cell:
    if one is None:
        return Cell("—")
    if not np.isfinite(one.value):
        return Cell("nan")
    if row.direction is None:
        return Cell(four_digits(one.value))
    where = f" ep {one.epoch:g}" if np.isfinite(one.epoch) and one.epoch == round(one.epoch) else ""
    where = where or (f" step {one.step:,.0f}" if np.isfinite(one.step) else "")
    best = place in row.best
    return Cell(f"{four_digits(one.value)}{' ' + BEST_MARK if best else '  '}", best, where)


def config_rows(compared: Comparison) -> tuple[list[KeyRow], int]:
    """The keys that differ, with each run's value (`ABSENT` where it has none to read), and how many do not."""
    readable = [place for place, line in enumerate(compared.lines) if line.config is not None]
    trees = {str(place): compared.lines[place].config for place in readable}
    if not trees:
        return [], 0
    rows = [
        KeyRow(
            row.key,
            tuple(dict(zip(readable, row.values, strict=True)).get(n, ABSENT) for n in range(len(compared.lines))),
        )
        for row in diff(trees)
    ]
    return rows, equal_keys(trees)


def config_table(compared: Comparison) -> Table:
    """Only keys that differ; a value that is not the first run's stands out."""
    rows, equal = config_rows(compared)
    cells = tuple((Cell(plain(row.key)), *_config_cells(row.values)) for row in rows)
    notes = [f"{equal} key{' is' if equal == 1 else 's are'} equal"] if rows or equal else []
    notes += [plain(line.problem) for line in compared.lines if line.config is None and line.problem]
    readable = sum(line.config is not None for line in compared.lines)
    instead = "No setting differs." if readable > 1 and not rows else ""
    return Table(("", *(line.name for line in compared.lines)), cells, " · ".join(notes), instead)


def _config_cells(values: Sequence[object]) -> list[Cell]:
    first = words(values[0])
    return [Cell(plain(words(value)), words(value) != first) for value in values]
