"""Choosing which columns the table has, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import SelectionList
from textual.widgets.selection_list import Selection

from cockpit.core.text import plain
from engines.contract.spec import Column


class _Columns(SelectionList[str]):
    BINDINGS = [
        Binding("enter", "screen.keep", "keep", priority=True, id="columns.keep", tooltip="Show these columns"),
        Binding("K,shift+up", "screen.move(-1)", "up", id="columns.up", tooltip="This column to the left"),
        Binding("J,shift+down", "screen.move(1)", "down", id="columns.down", tooltip="This column to the right"),
        Binding("a", "screen.every", "all", id="columns.all", tooltip="All columns, in the project's order"),
    ]  # fmt: skip


class ColumnsScreen(ModalScreen[list[str] | None]):
    """Gives the sources of the columns to show, in order; an empty list for all of them as they come."""

    CSS_PATH = "columns.tcss"
    BINDINGS = [Binding("escape", "dismiss", "close", id="columns.close", tooltip="Leave the columns as they are")]

    def __init__(self, columns: Sequence[Column], now: Sequence[Column]) -> None:
        super().__init__()
        self._all = tuple(columns)
        self._columns = [*now, *(column for column in columns if column not in now)]
        self._now = {column.source for column in now}

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="columns") as dialog:
            dialog.border_title = "Columns"
            dialog.border_subtitle = "space show or hide  K J move  a all  ⏎ keep  escape close"
            yield _Columns(*self._selections(), compact=True)

    @property
    def _list(self) -> SelectionList[str]:
        return self.query_one(_Columns)

    def _selections(self) -> list[Selection[str]]:
        width = max((len(plain(column.title)) for column in self._columns), default=0)
        return [
            Selection(
                Text.assemble(f"{plain(column.title):{width}}  ", (plain(column.source), "dim")),
                column.source, column.source in self._now,
            )
            for column in self._columns
        ]  # fmt: skip

    @on(SelectionList.SelectedChanged)
    def _chosen(self) -> None:
        self._now = set(self._list.selected)

    def action_move(self, by: int) -> None:
        place = self._list.highlighted
        if place is None or not 0 <= place + by < len(self._columns):
            return
        columns = self._columns
        columns[place], columns[place + by] = columns[place + by], columns[place]
        self._fill(place + by)

    def action_every(self) -> None:
        self._columns, self._now = list(self._all), {column.source for column in self._all}
        self._fill(0)

    def _fill(self, highlighted: int) -> None:
        now = self._now  # clearing the list says that nothing is chosen
        with self.prevent(SelectionList.SelectedChanged):
            self._list.clear_options()
            self._now = now
            self._list.add_options(self._selections())
        self._list.highlighted = highlighted

    def action_keep(self) -> None:
        sources = [column.source for column in self._columns if column.source in self._now]
        self.dismiss([] if sources == [column.source for column in self._all] else sources)
