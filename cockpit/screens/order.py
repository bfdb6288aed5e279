"""Choosing in which order runs are listed."""

from __future__ import annotations

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from cockpit.core.runs import run_order
from cockpit.core.runs.run_order import ORDERS, Order
from cockpit.screens.dialog import Dialog


class OrderScreen(Dialog[str | None]):
    """Gives the order as the settings keep it; the one in force, chosen again, is turned round."""

    CSS_PATH = "order.tcss"
    BINDINGS = [Binding("escape", "dismiss", "Close", id="order.close", tooltip="Close, keeping the order")]

    def __init__(self, written: str) -> None:
        super().__init__()
        self._written = written

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="order") as dialog:
            dialog.border_title = "Sort runs"
            dialog.border_subtitle = "enter choose (again: reverse)   escape close"
            yield OptionList(*(Option(self._prompt(order), id=order.name) for order in ORDERS), compact=True)

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = ORDERS.index(run_order.parse(self._written)[0])

    def _prompt(self, order: Order) -> Text:
        now, descending = run_order.parse(self._written)
        sign = ("▼" if descending else "▲") if order is now else " "
        return Text.assemble(f"{sign} ", (f"{order.name:8}", "bold"), (order.about, "dim"))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        if event.option_id is not None:
            self.dismiss(run_order.choose(event.option_id, self._written))
