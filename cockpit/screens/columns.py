"""Choosing which columns the table has, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from cockpit.core.text import fit_left, plain
from cockpit.screens.dialog import Dialog
from engines.contract.spec import Column


class ColumnsScreen(Dialog[list[str] | None]):
    """Gives the sources of the columns to show, in order; an empty list for all of them as they come."""

    CSS_PATH = "columns.tcss"
    BINDINGS = [
        Binding("space", "switch", "show or hide", id="columns.switch", tooltip="Show or hide this column"),
        Binding("K,shift+up", "move(-1)", "up", id="columns.up", tooltip="Move this column left"),
        Binding("J,shift+down", "move(1)", "down", id="columns.down", tooltip="Move this column right"),
        Binding("a", "every", "all", id="columns.all", tooltip="All columns, in the project's order"),
        Binding("escape", "dismiss", "close", id="columns.close", tooltip="Close, keeping the columns"),
    ]

    def __init__(self, columns: Sequence[Column], now: Sequence[Column]) -> None:
        super().__init__()
        self._all = tuple(columns)
        self._columns = [*now, *(column for column in columns if column not in now)]
        self._shown = {column.source for column in now}

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="columns") as dialog:
            dialog.border_title = "Columns"
            dialog.border_subtitle = "space show/hide  K J move  a all  enter keep  escape close"
            yield OptionList(*map(self._option, self._columns), compact=True)

    @property
    def _list(self) -> OptionList:
        return self.query_one(OptionList)

    def _option(self, column: Column) -> Option:
        width = max(cell_len(plain(other.title)) for other in self._all)
        sign = "✓" if column.source in self._shown else " "
        return Option(Text.assemble(f"{sign} {fit_left(plain(column.title), width)}  ", (plain(column.source), "dim")))

    def action_switch(self) -> None:
        if (place := self._list.highlighted) is not None:
            self._shown ^= {self._columns[place].source}
            self._fill(place)

    def action_move(self, by: int) -> None:
        place, columns = self._list.highlighted, self._columns
        if place is not None and 0 <= place + by < len(columns):
            columns[place], columns[place + by] = columns[place + by], columns[place]
            self._fill(place + by)

    def action_every(self) -> None:
        self._columns, self._shown = list(self._all), {column.source for column in self._all}
        self._fill(0)

    def _fill(self, highlighted: int) -> None:
        self._list.set_options(map(self._option, self._columns))
        self._list.highlighted = highlighted

    @on(OptionList.OptionSelected)
    def _keep(self) -> None:
        sources = [column.source for column in self._columns if column.source in self._shown]
        self.dismiss([] if sources == [column.source for column in self._all] else sources)
