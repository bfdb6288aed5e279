"""The table of a comparison: lines under columns, ordered, as words; and the same as Markdown and as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from cockpit.core.compare.columns import (
    DELTA,
    WORDS,
    Number,
    available,
    default_sources,
    differing,
    direction,
    number,
    settings_of,
    short_titles,
)
from cockpit.core.compare.entries import Entry
from cockpit.core.compare.lines import Key, Line, by_seed, every_run, opened
from cockpit.core.compare.tables import Cell
from cockpit.core.config.diff import ABSENT, words
from cockpit.core.format import fitted, four_digits
from cockpit.core.states import label
from cockpit.core.table.columns import chosen
from cockpit.core.text import plain
from engines.basics.amounts import money, short_duration
from engines.basics.errors import UserError, nearest
from engines.contract.spec import Column

NAME, SETTING = "name", "setting."
"""Sources of columns that are no values; a setting's is followed by its key."""
NUMBER_WIDTH = 8
CLOSED, OPEN, INSIDE = "+ ", "- ", "  · "
"""Before the name of a group, and of a run below one."""


@dataclass(frozen=True)
class Choice:
    """What the user chose of a comparison. `order` is a column's source, after `-` descending; empty: the default."""

    order: str = ""
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Sources of the value columns, by `LineTable.projects`; where none are, or none that exist, the default ones."""
    apart: bool = False
    """Whether runs that differ in the seed alone have a line each."""
    open: frozenset[Key] = frozenset()
    """Groups whose runs are shown below them."""


@dataclass(frozen=True)
class Title:
    """The head of a column; numbers stand at its right."""

    source: str
    text: str
    right: bool = True


@dataclass(frozen=True)
class LineTable:
    """`cells` has a row per line and a cell per title; the first `fixed` columns stay in view."""

    titles: tuple[Title, ...] = ()
    lines: tuple[Line, ...] = ()
    cells: tuple[tuple[Cell, ...], ...] = ()
    fixed: int = 1
    order: tuple[str, bool] = ("score", True)
    """The source that orders, and whether it descends."""
    note: str = ""
    values: tuple[Column, ...] = ()
    """The value columns that can be shown."""
    shown: tuple[Column, ...] = ()
    projects: str = ""
    """Of the runs, with `+` between several."""


@dataclass(frozen=True)
class Compared:
    """The runs of a comparison and the pinned run of each of their projects, at one moment."""

    entries: tuple[Entry, ...]
    baselines: Mapping[str, Entry] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    """Sentences on baselines that cannot be compared with."""
    now: float = 0.0

    def number(self, source: str, line: Line) -> Number | None:
        return number(source, line, self.now, self.baselines)


def make_table(compared: Compared, choice: Choice) -> LineTable:
    """The lines in order with all their words. 20 ms for a thousand runs: call it from a worker."""
    entries = compared.entries
    keys = differing(entries)
    values = available(entries, deltas=bool(compared.baselines))
    projects = "+".join(sorted({entry.summary.project for entry in entries if entry.summary is not None} - {""}))
    wanted = [source for source in choice.columns.get(projects, ()) if source in {column.source for column in values}]
    shown = chosen(values, wanted or default_sources(values, entries))
    titles = _titles(keys, shown)
    source, descending = parse_order(choice.order)
    if source not in {title.source for title in titles} and source not in {column.source for column in values}:
        source, descending = "score", True
    lines = every_run(entries) if choice.apart else by_seed(entries)
    lines = _with_opened(_ordered(lines, source, descending, compared), choice, source, descending, compared)
    columns = {column.source: column for column in shown}
    cells = list(zip(*(_column(title, columns, lines, compared, choice) for title in titles), strict=True))
    fixed = 1 + sum(1 for _ in takewhile(_stays, titles[1:]))
    return LineTable(
        tuple(titles), tuple(lines), tuple(cells), fixed, (source, descending),
        _note(compared, lines, keys), tuple(values), tuple(shown), projects,
    )  # fmt: skip


def _titles(keys: Sequence[str], shown: Sequence[Column]) -> list[Title]:
    """The run with score and difference, then the settings, then the other values: the first ones stay in view."""
    titles = [Title(column.source, plain(column.title), column.source not in WORDS) for column in shown]
    front = list(takewhile(_stays, titles))
    settings = [Title(SETTING + key, plain(title)) for key, title in zip(keys, short_titles(keys), strict=True)]
    return [Title(NAME, "Run", right=False), *front, *settings, *titles[len(front) :]]


def _stays(title: Title) -> bool:
    return title.source in ("score", DELTA + "score")


# -- order -------------------------------------------------------------------------------------------------------------


def parse_order(written: str) -> tuple[str, bool]:
    """The source and whether it descends; the best score first where nothing was chosen."""
    return (written.removeprefix("-"), written.startswith("-")) if written else ("score", True)


def turned(source: str, order: tuple[str, bool]) -> str:
    """Order by `source` in its usual direction, best first; when it orders already (`order`), the other way round."""
    if source == order[0]:
        return source if order[1] else f"-{source}"
    of = source.removeprefix(DELTA)
    usual = source in (NAME, *WORDS, "seconds", "usd", "epoch") or source.startswith(SETTING)
    return source if usual or direction(of) == "lowest" else f"-{source}"


def find_source(typed: str, table: LineTable) -> str:
    """The source of what the user calls a column: its title, its source, a setting's key. Raises `UserError`."""
    known: dict[str, str] = {}
    for title in (*table.titles, *(Title(column.source, column.title) for column in table.values)):
        source = title.source
        for name in (title.text, source, source.removeprefix(SETTING), source.rpartition(".")[2]):
            known.setdefault(name.casefold(), source)
    if (found := known.get(typed.casefold())) is None:
        names = dict.fromkeys([*(title.text for title in table.titles), *(column.title for column in table.values)])
        raise UserError(f"No column is called {typed!r}{nearest(typed, known)}; there are {', '.join(names)}.")
    return found


def _ordered(lines: Sequence[Line], source: str, descending: bool, compared: Compared) -> list[Line]:
    """Equals in the order given; what has no value comes last, either way."""
    values = {line.key: _order_value(line, source, compared) for line in lines}
    having = [line for line in lines if values[line.key] is not None]
    having.sort(key=lambda line: values[line.key], reverse=descending)  # type: ignore[arg-type,return-value]
    return having + [line for line in lines if values[line.key] is None]


def _order_value(line: Line, source: str, compared: Compared) -> tuple[int, float, str] | None:
    """Numbers before words."""
    if source == NAME:
        return 1, 0.0, line.name.casefold()
    if source in WORDS:
        return 1, 0.0, word(source, line)
    if source.startswith(SETTING):
        found = settings_of(line, source.removeprefix(SETTING))
        value = found[0] if len(found) == 1 else ABSENT
        if value is ABSENT:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and value == value
        return (0, float(value), "") if is_number else (1, 0.0, words(value))
    measured = compared.number(source, line)
    return None if measured is None else (0, measured.value, "")


def _with_opened(
    lines: Sequence[Line], choice: Choice, source: str, descending: bool, compared: Compared
) -> list[Line]:
    found: list[Line] = []
    for line in lines:
        found.append(line)
        if line.is_group and line.key in choice.open:
            found += _ordered(opened(line), source, descending, compared)
    return found


# -- words -------------------------------------------------------------------------------------------------------------


def _column(
    title: Title, columns: Mapping[str, Column], lines: Sequence[Line], compared: Compared, choice: Choice
) -> list[Cell]:
    source = title.source
    if source == NAME:
        return [_name(line, choice) for line in lines]
    if source.startswith(SETTING):
        return [Cell(_setting(line, source.removeprefix(SETTING))) for line in lines]
    if source in WORDS:
        return [Cell(word(source, line)) for line in lines]
    numbers = [compared.number(source, line) for line in lines]
    better = direction(source)
    reached = [one.value for one, line in zip(numbers, lines, strict=True) if one is not None and not line.inside]
    best = (max if better == "highest" else min)(reached) if better and len(reached) > 1 else None
    return [_number(one, columns[source], line, compared, best) for one, line in zip(numbers, lines, strict=True)]


def _name(line: Line, choice: Choice) -> Cell:
    if not line.is_group:
        return Cell((INSIDE if line.inside else "") + line.name)
    return Cell(f"{OPEN if line.key in choice.open else CLOSED}{line.name}", aside=f" ×{len(line.entries)}")


def _setting(line: Line, key: str) -> str:
    found = settings_of(line, key)
    if not found:
        return "?"
    if len(found) == 1:
        value = found[0]
        return plain(f"{value:g}" if isinstance(value, float) else value if isinstance(value, str) else words(value))
    return f"{len(found)} values"


def word(source: str, line: Line) -> str:
    """What a column of words shows of a line: `state`, `done`, `tags` or `project`."""
    summaries = [entry.summary for entry in line.entries if entry.summary is not None]
    if not summaries:
        return "…"
    match source:
        case "state":
            states = [
                "✖ gone" if entry.gone else label(entry.summary.state)
                for entry in line.entries if entry.summary is not None
            ]  # fmt: skip
            different = dict.fromkeys(states)
            return " ".join(f"{states.count(state)} {state}" if len(different) > 1 else state for state in different)
        case "done":
            done, total = sum(one.done for one in summaries), sum(one.total for one in summaries)
            return f"{done:,.0f}/{total:,.0f}" if total else "—"
        case "tags":
            return " ".join(dict.fromkeys(plain(tag) for one in summaries for tag in one.tags))
        case _:
            return " ".join(dict.fromkeys(plain(one.project) for one in summaries))


def _number(one: Number | None, column: Column, line: Line, compared: Compared, best: float | None) -> Cell:
    if one is None:
        return Cell("—")
    source, tone = column.source, ""
    if source.startswith(DELTA):
        base = compared.baselines[line.entries[0].summary.project]  # type: ignore[union-attr]
        if not line.is_group and line.entries[0].run.path == base.run.path:
            return Cell("pinned", tone="quiet")
        better = direction(source.removeprefix(DELTA))
        if better and one.value:
            tone = "good" if (one.value > 0) == (better == "highest") else "bad"
        return Cell(signed(one.value, column.format), tone=tone)
    text = number_words(source, one.value, column.format)
    aside = ""
    if line.is_group and source not in ("epoch", "seconds", "usd"):
        aside = f" ±{number_words(source, one.spread, column.format)}" if one.spread is not None else ""
        aside += f" n={one.count}" if one.count < len(line.entries) else ""
    return Cell(text, one.value == best, aside)


def number_words(source: str, value: float, format: str) -> str:
    """A number as its column shows it."""
    match source:
        case "seconds":
            return short_duration(value)
        case "usd":
            return money(value)
        case "epoch":
            return f"{value:.1f}".removesuffix(".0")
    if format.endswith("d"):
        return f"{value:.0f}"
    return fitted(value, format, NUMBER_WIDTH) if abs(value) < 1e6 else four_digits(value).strip()


def signed(value: float, format: str = ".3f") -> str:
    """A difference with its sign: `+0.012`."""
    return fitted(value, f"+{format.lstrip(',+')}", NUMBER_WIDTH) if not format.endswith("d") else f"{value:+.0f}"


def _note(compared: Compared, lines: Sequence[Line], keys: Sequence[str]) -> str:
    """What is wrong comes first: the rest may be cut."""
    unread = [entry for entry in compared.entries if entry.problem]
    parts = [f"{len(unread)} runs cannot be read whole"] if len(unread) > 1 else []
    parts += [plain(f"{entry.name}: {entry.problem.rstrip('.')}") for entry in unread if len(unread) == 1]
    parts += [problem.rstrip(".") for problem in compared.problems]
    if bases := {entry.name: None for entry in compared.baselines.values()}:
        parts.append(f"Δ to {', '.join(bases)}")
    if any(line.is_group for line in lines):
        parts.append("± standard deviation over seeds")
    if not keys and sum(entry.settings is not None for entry in compared.entries) > 1:
        parts.append("no setting differs")
    return " · ".join(parts)


# -- as data -----------------------------------------------------------------------------------------------------------


def plain_rows(table: LineTable) -> tuple[list[str], list[list[str]]]:
    """The titles, and the words of each line."""
    rows = [[(cell.text + cell.aside).strip() for cell in cells[1:]] for cells in table.cells]
    names = [
        (INSIDE if line.inside else "") + line.name + cells[0].aside
        for line, cells in zip(table.lines, table.cells, strict=True)
    ]
    return [title.text for title in table.titles], [[name, *row] for name, row in zip(names, rows, strict=True)]


def facts(compared: Compared, table: LineTable) -> dict[str, Any]:
    """The table as plain values: of a group each number's mean, standard deviation and count."""
    sources = [column.source for column in table.shown if column.source not in WORDS]
    keys = [title.source.removeprefix(SETTING) for title in table.titles if title.source.startswith(SETTING)]
    return {
        "baselines": {project: entry.run.path.name for project, entry in compared.baselines.items()},
        "settings": keys,
        "columns": sources,
        "lines": [
            {
                "name": line.name,
                "runs": [entry.run.path.name for entry in line.entries],
                "settings": {key: _setting_facts(line, key) for key in keys},
                "values": {source: _number_facts(compared.number(source, line), line) for source in sources},
            }
            for line in table.lines
        ],
    }


def _setting_facts(line: Line, key: str) -> Any:
    found = [None if value is ABSENT else value for value in settings_of(line, key)]
    return found[0] if len(found) == 1 else found


def _number_facts(one: Number | None, line: Line) -> Any:
    if one is None or not line.is_group:
        return None if one is None else one.value
    return {"mean": one.value, "sd": one.spread, "n": one.count}
