"""What the commands write: results on stdout, news on stderr, and text from elsewhere made safe for the terminal."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich.cells import cell_len

from cockpit.core.text import fit_left, plain
from cockpit.core.text_table import BETWEEN, TextTable
from cockpit.core.typed import typed


def say(text: str) -> None:
    """One line of news or error on stderr."""
    print(f"cockpit: {plain(typed(text))}", file=sys.stderr, flush=True)


def show(line: str = "") -> None:
    """One line of result on stdout, at once, for whoever follows a pipe."""
    print(line, flush=True)


def show_json(value: Any) -> None:
    """One JSON document on stdout: ASCII, so that no name can steer a terminal; what is not finite becomes null."""
    print(json.dumps(msgspec.json.decode(msgspec.json.encode(value)), indent=2))


def show_json_line(value: Any) -> None:
    """The same on one line, one of many."""
    show(json.dumps(msgspec.json.decode(msgspec.json.encode(value))))


def show_pairs(pairs: Mapping[str, str]) -> None:
    """`name  value` lines with the values aligned; empty values are left out."""
    width = max((cell_len(name) for name in pairs), default=0)
    for name, value in pairs.items():
        if value:
            show(f"{fit_left(name, width)}  {plain(value)}".rstrip())


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns under their titles: numbers right-aligned, all else left-aligned."""
    table = TextTable.of(columns, rows)
    for line in (table.header, table.rule, *table.rows):
        show(BETWEEN.join(line).rstrip())


def show_named_tables(tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Tables of a report or of statistics: `columns`, `rows` and a `note` under each name."""
    for index, (name, table) in enumerate(tables.items()):
        if index:
            show()
        show(plain(name))
        show_table(table["columns"], table["rows"])
        if table.get("note"):
            show(plain(typed(table["note"])))


class StatusLine:
    """A line on stderr that is rewritten in place; where stderr is no terminal it is never written at all."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._shown = ""

    def show(self, text: str) -> None:
        text = text[: shutil.get_terminal_size().columns - 1]
        if self._live and text != self._shown:
            # overwritten with spaces, not cleared with an escape sequence: a dumb terminal knows none
            width = max(cell_len(text), cell_len(self._shown))
            print("\r" + fit_left(text, width), end="", file=sys.stderr, flush=True)
            self._shown = text

    def clear(self) -> None:
        if self._shown:
            print("\r" + " " * cell_len(self._shown) + "\r", end="", file=sys.stderr, flush=True)
            self._shown = ""
