"""The columns of the list of runs: which fit, how wide they are, and what each shows of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from cockpit.core.format import fitted
from cockpit.core.runs.summary import RunSummary
from cockpit.core.sparkline import sparkline
from cockpit.core.states import WIDTH as STATE_WIDTH
from cockpit.core.states import is_live, label
from cockpit.core.text import plain
from cockpit.core.times import date
from cockpit.widgets.run_header import tone
from engines.basics.amounts import money, short_duration
from engines.host.queue import ordinal
from engines.runs import spending

GAP = " "
NOTE_WIDTH = 20
CURSOR, MARK = ">", "*"
"""Signs before the line and before the name: seen also where there is no colour."""


@dataclass(frozen=True)
class Column:
    title: str
    width: int
    left: bool
    from_width: int = 0
    """Width of the pane from which on it is shown."""
    order: str = ""
    """What a click on its title orders by."""
    most: int = 0
    """Width that it takes in a wide pane."""
    least: int = 0
    """Width that it gives up to in a narrow one."""


PROJECT = "Project"
"""Shown where the runs are not all of one."""
COLUMNS = (
    Column("State", STATE_WIDTH, True, order="state"),
    Column("Run", 30, True, order="name", most=48, least=12),
    Column(PROJECT, 9, True, 100),
    Column("Epoch", 7, False, order="epoch", most=11),
    Column("Score", 5, False, order="score"),
    Column("", 14, True, 112),
    Column("Spent", 7, False, order="spent"),
    Column("Age", 5, False, order="age"),
    Column("Device", 8, True, 122),
    Column("Date", 10, True, 148),
)


@cache
def columns_for(width: int, *, projects: bool, longest: int, epochs: int) -> dict[int, Column]:
    """The columns that fit into a pane of `width`, by their places in COLUMNS; with `projects` that of those.

    `epochs`: cells of the longest count of epochs, which is whole in every width. What is left lets the names grow up
    to the `longest`, then what a note does not need the others.
    """
    there = {
        place: replace(column, width=min(max(column.width, epochs), column.most)) if column.order == "epoch" else column
        for place, column in enumerate(COLUMNS)
        if column.from_width <= width and (projects or column.title != PROJECT)
    }
    # the sign at the start takes a cell, and no gap follows the last column
    spare = width - len(CURSOR) - sum(column.width + len(GAP) for column in there.values()) + len(GAP)
    for place, column in there.items():
        note = NOTE_WIDTH + len(GAP)
        free = spare - note if spare >= note and column.order != "name" else spare
        most = max(column.width, min(column.most, longest)) if column.order == "name" else column.most or column.width
        fitting = min(max(column.width + free, column.least or column.width), most)
        there[place] = replace(column, width=fitting)
        spare -= fitting - column.width
    return there


def cells(row: RunSummary, name: str, now: float) -> list[tuple[str, str]]:
    """Text and style of every column, in their order."""
    return [
        (_state(row), "state--bad" if row.alert else f"state--{tone(row.state)}"),
        (name, "runs--name"),
        (plain(row.project), "runs--project"),
        (progress(row), "runs--number"),
        ("—" if row.score is None else fitted(row.score, ".3f", 5), "runs--number"),
        (sparkline(row.scores, 14), "runs--spark"),
        (_spent(row, now), "runs--number"),
        (short_duration(now - row.created) if row.created else "—", "runs--quiet"),
        (plain(row.device) or "—", "runs--quiet"),
        (date(row.created) if row.created else "—", "runs--quiet"),
    ]


def _state(row: RunSummary) -> str:
    return label(row.state, row.alert) + (f" {ordinal(row.queued[1])}" if row.queued else "")


def progress(row: RunSummary) -> str:
    return f"{row.done:,.0f}/{row.total:,.0f}" if row.total else "—"


def _spent(row: RunSummary, now: float) -> str:
    if not row.spans:
        return "—"
    usd = spending.usd_spent(row.spans, now)
    return short_duration(spending.seconds_spent(row.spans, now)) if usd is None else money(usd)


def note(row: RunSummary, is_baseline: bool) -> str:
    """What is wrong with it, else a user's own words, else why it ended as it did, else what it runs."""
    if row.alert is not None:
        return plain(row.alert.text)
    tags = " ".join(f"#{tag}" for tag in row.tags)
    own = " · ".join(part for part in ("baseline" * is_baseline, tags, row.notes, row.inherited) if part)
    return plain(own or ("" if is_live(row.state) else row.detail) or row.title)
