"""What a comparison shows of its lines: the settings that differ, and numbers measured at the best epoch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cockpit.core.compare.entries import Entry
from cockpit.core.compare.lines import Line
from cockpit.core.compare.settings import known
from cockpit.core.config.diff import ABSENT
from cockpit.core.format import is_format
from engines.contract.spec import Column
from engines.runs import spending
from engines.runs.history import column_value

Direction = Literal["highest", "lowest"]
DELTA = "delta."
"""Begins the source of a difference to the baseline."""
OWN = (
    Column("Ep", "epoch", "d"), Column("Done", "done"), Column("Time", "seconds"), Column("Cost", "usd"),
    Column("State", "state"), Column("Tags", "tags"), Column("Project", "project"),
)  # fmt: skip
"""What every run has beside its measurements; the epoch is its best one."""
WORDS = ("done", "state", "tags", "project")
"""Sources of words."""
_NO_VALUE = ("epoch", "score", "step", "stage", "seconds", "best")
"""Columns of the epoch table that are no measurement."""
_SHORT = {"train": "tr", "validation": "vl"}


@dataclass(frozen=True)
class Number:
    """A value, or the mean of `count` runs with their sample standard deviation."""

    value: float
    spread: float | None = None
    count: int = 1


def direction(metric: str) -> Direction | None:
    """Which value is better: of the score the highest (by it the engine chooses `best.pt`), of a loss the lowest.

    Of other metrics nothing says so, and nothing is guessed.
    """
    if metric == "score":
        return "highest"
    key = metric.rpartition(".")[2].lower()
    return "lowest" if key == "loss" or key.endswith("_loss") else None


# -- settings ----------------------------------------------------------------------------------------------------------


def differing(entries: Sequence[Entry]) -> list[str]:
    """The settings that differ between runs and that a result may depend on, in the order of the configs.

    Between runs of several projects only those that all of them have.
    """
    trees = [entry.settings.training for entry in entries if entry.settings is not None]
    first = dict.fromkeys(key for tree in {id(tree): tree for tree in trees}.values() for key in tree)
    if _projects(entries) > 1:
        first = {key: None for key in first if key != "project" and all(key in tree for tree in trees)}
    return [key for key in first if _differs(key, trees)]


def _differs(key: str, trees: Sequence[Mapping[str, Any]]) -> bool:
    one = trees[0].get(key, ABSENT)
    return any(other is not one and known(other) != known(one) for other in (tree.get(key, ABSENT) for tree in trees))


def _projects(entries: Sequence[Entry]) -> int:
    return len({entry.summary.project for entry in entries if entry.summary is not None and entry.summary.project})


def settings_of(line: Line, key: str) -> list[Any]:
    """The different values of a setting in a line, `ABSENT` among them; none where no config can be read."""
    values = [entry.settings.flat.get(key, ABSENT) for entry in line.entries if entry.settings is not None]
    return list({known(value): value for value in values}.values())


def short_titles(keys: Sequence[str]) -> list[str]:
    """The last part of each key, as many parts as it takes to tell them apart."""
    parts = [key.split(".") for key in keys]
    titles = [part[-1] for part in parts]
    for size in range(2, max(map(len, parts), default=1) + 1):
        often = [titles.count(title) > 1 for title in titles]
        titles = [
            ".".join(part[-size:]) if twice else title for part, title, twice in zip(parts, titles, often, strict=True)
        ]
    return titles


# -- values ------------------------------------------------------------------------------------------------------------


def available(entries: Sequence[Entry], *, deltas: bool) -> list[Column]:
    """Every column of values that there is something to show in: score, the projects' own, what else was measured."""
    summaries = [entry.summary for entry in entries if entry.summary is not None]
    measured: dict[str, int] = {}
    tables: dict[str, dict[int, Sequence[Column]]] = {}
    for summary in summaries:
        tables.setdefault(summary.project, {})[id(summary.columns)] = summary.columns
        if (best := summary.best) is not None:
            for group, values in (("train", best.train), ("validation", best.validation)):
                for key in values:
                    measured[f"{group}.{key}"] = measured.get(f"{group}.{key}", 0) + 1
    of_best = sum(summary.best is not None for summary in summaries)
    shared = {source for source, count in measured.items() if len(tables) < 2 or count == of_best} | {"lr"}
    announced = {column.source: column for table in tables.values() for own in table.values() for column in own}
    found = [column for source, column in announced.items() if source in shared and source not in _NO_VALUE]
    found += [_found(source) for source in measured if source in shared and source not in announced]
    columns = [Column("Score", "score"), *map(_safe, found)]
    differences = [Column(f"Δ {column.title}", DELTA + column.source, column.format) for column in columns]
    return [*columns, *OWN, *(differences if deltas else ())]


def _found(source: str) -> Column:
    group, _, key = source.partition(".")
    return Column(f"{_SHORT.get(group, group)}.{key}", source, ".3f", wide=True)


def _safe(column: Column) -> Column:
    """With a format that is one, whatever a log says."""
    return column if is_format(column.format) else Column(column.title, column.source, wide=column.wide)


def default_sources(columns: Sequence[Column], entries: Sequence[Entry]) -> list[str]:
    """The score, the difference to the baseline, what the project's narrow table shows, then time and so on.

    Of the rest only what says something: the cost where the machine has a price, the state where one has not finished.
    """
    summaries = [entry.summary for entry in entries if entry.summary is not None]
    finished = all(summary.state in ("finished", "early-stopped") for summary in summaries)
    shown = {
        "state": not finished or any(entry.gone for entry in entries),
        "done": not finished,
        "usd": any(span.usd_per_hour > 0 for summary in summaries for span in summary.spans),
        "tags": any(summary.tags for summary in summaries),
        "project": _projects(entries) > 1,
        "lr": False,
        DELTA + "score": True,
    }
    there = {column.source: column for column in columns}
    first = [source for source in ("score", DELTA + "score", "project", "state", "done") if source in there]
    rest = [source for source, column in there.items() if source not in first and not column.wide]
    return [source for source in [*first, *rest] if shown.get(source, not source.startswith(DELTA))]


def number_of(source: str, entry: Entry, now: float) -> float | None:
    """One run's finite number, measured at its best epoch; None where it has none."""
    summary = entry.summary
    if summary is None:
        return None
    value: Any
    match source:
        case "score":
            value = summary.score
        case "seconds":
            value = spending.seconds_spent(summary.spans, now) if summary.spans else None
        case "usd":
            value = spending.usd_spent(summary.spans, now)
        case _:
            value = column_value(source, summary.best) if summary.best is not None else None
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def number(source: str, line: Line, now: float, baselines: Mapping[str, Entry]) -> Number | None:
    """A line's number: of a group the mean and the sample standard deviation of the runs that have one.

    The source of a difference gives that to the baseline of the line's project.
    """
    if source.startswith(DELTA):
        of = source.removeprefix(DELTA)
        own = number(of, line, now, {})
        base = baselines.get(line.entries[0].summary.project) if line.entries[0].summary is not None else None
        against = number_of(of, base, now) if base is not None else None
        if own is None or against is None:
            return None
        return Number(own.value - against, own.spread, own.count)
    values = [value for entry in line.entries if (value := number_of(source, entry, now)) is not None]
    if not values:
        return None
    spread = statistics.stdev(values) if len(values) > 1 else None
    return Number(statistics.fmean(values), spread, len(values))
