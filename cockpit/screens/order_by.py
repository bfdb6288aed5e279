"""Choosing the column by which a table is ordered."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from cockpit.core.text import plain
from cockpit.screens.dialog import Dialog


class OrderByScreen(Dialog[str | None]):
    """Gives the source of the chosen column."""

    CSS_PATH = "order.tcss"
    BINDINGS = [Binding("escape", "dismiss", "Close", id="order.close", tooltip="Leave the order as it is")]

    def __init__(self, columns: Sequence[tuple[str, str]], order: tuple[str, bool]) -> None:
        """`columns` are (source, title); `order` is the source in force and whether it descends."""
        super().__init__()
        self._columns, self._order = list(columns), order

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="order") as dialog:
            dialog.border_title = "Order by"
            dialog.border_subtitle = "enter choose, again to reverse   escape close"
            yield OptionList(*(Option(self._prompt(*column)) for column in self._columns), compact=True)

    def on_mount(self) -> None:
        sources = [source for source, _ in self._columns]
        self.query_one(OptionList).highlighted = sources.index(self._order[0]) if self._order[0] in sources else 0

    def _prompt(self, source: str, title: str) -> Text:
        sign = ("▼" if self._order[1] else "▲") if source == self._order[0] else " "
        return Text.assemble(
            f"{sign} ", (f"{plain(title):14}", "bold"), (plain(source.removeprefix("setting.")), "dim")
        )

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._columns[event.option_index][0])
