"""Two to eight runs over one another: their lines in the same charts, what each reached, how their configs differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widgets import OptionList, Static, Tab, Tabs

from cockpit.core.metrics.compare import CompareSource
from cockpit.core.metrics.compare_tables import config_table, values_table
from cockpit.core.metrics.overlay import by_metric
from cockpit.screens.palette import ActionProvider
from cockpit.widgets.charts_panel import ChartsPanel
from cockpit.widgets.compare_legend import CompareLegend
from cockpit.widgets.compare_table import CompareTable
from cockpit.widgets.footer import Footer
from cockpit.widgets.heading import heading
from cockpit.widgets.throttle import Throttle
from engines.contract.rundir import RunDirectory

WIDE = 160
"""Columns from which on the tables stand beside the charts."""
SHOW_SECONDS = 1.0
PARTS = ("charts", "values", "config")


class CompareScreen(Screen[None]):
    CSS_PATH = "compare.tcss"
    COMMANDS = {ActionProvider}
    AUTO_FOCUS = ""  # the charts'
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
    BINDINGS = [
        Binding("escape", "back", "runs", id="compare.runs", tooltip="Back to the list of runs, their marks kept"),
        Binding(
            "l",
            "legend",
            "list",
            show=False,
            id="compare.legend",
            tooltip="To the list of the runs: hide one, open one",
        ),
        *(
            Binding(str(place), f"part('{name}')", name, show=False, id=f"compare.{name}", tooltip=f"Show {name}")
            for place, name in enumerate(PARTS, 1)
        ),
    ]

    class Back(Message):
        """The person wants the list of runs."""

    @dataclass
    class Open(Message):
        """The person wants to see one of them alone."""

        run: RunDirectory

    def __init__(self, runs: Sequence[RunDirectory]) -> None:
        """Raises `ValueError` for more than can be told apart."""
        super().__init__()
        self._runs = tuple(runs)
        self._source = CompareSource(runs)
        self._throttle = Throttle(self, SHOW_SECONDS, self._show)

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield CompareLegend()
        yield Tabs(*(Tab(name.title(), id=f"tab-{name}") for name in PARTS))
        with Horizontal():
            yield ChartsPanel(self._source, grouping=by_metric, id="charts")
            with Vertical(id="tables"):
                yield CompareTable(id="values", title="Values")
                yield CompareTable(id="config", title="Config")
        yield Footer()

    @property
    def panel(self) -> ChartsPanel:
        return self.query_one(ChartsPanel)

    def on_mount(self) -> None:
        self.query_one(Tabs).can_focus = False
        words = ((f"{len(self._runs)} runs", "$foreground"), ("   l: hide one, open one", "$quiet"))
        self.query_one("#title", Static).update(heading("Compare", *words))
        self._show()

    def on_screen_suspend(self) -> None:
        self.panel.following = False

    def on_screen_resume(self) -> None:
        self.panel.following = True
        self._throttle.ask()

    # -- showing ---------------------------------------------------------------------------------------------------

    @on(ChartsPanel.Grown)
    def _grown(self) -> None:
        self._throttle.ask()

    def _show(self) -> None:
        if not self.is_active or not self.query(CompareLegend):
            return  # under another screen every change would paint that one whole; a closing one has no widgets
        compared = self._source.comparison
        self.query_one(CompareLegend).show(compared.runs, self._source.hidden)
        self.query_one("#values", CompareTable).show(values_table(compared))
        self.query_one("#config", CompareTable).show(config_table(compared))
        self._share_width()

    def _share_width(self) -> None:
        """On a wide screen half of it is for the tables; up to two thirds, where that lets every run be seen."""
        width, needed = self.size.width, self.query_one("#values", CompareTable).needs_width
        tables = min(max(needed, width // 2), width * 2 // 3) if width >= WIDE else "1fr"
        self.query_one("#tables").styles.width = tables

    def on_resize(self) -> None:
        if self.query(CompareTable):
            self._share_width()

    @on(Tabs.TabActivated)
    def _open_part(self, event: Tabs.TabActivated) -> None:
        part = str(event.tab.id).removeprefix("tab-")
        for name in PARTS:
            self.set_class(name == part, f"-{name}")
        self._focus(part)

    def _focus(self, part: str) -> None:
        if part == "charts":
            self.panel.take_focus()
        else:
            self.query_one(f"#{part}").focus()

    # -- keys ------------------------------------------------------------------------------------------------------

    def action_part(self, name: str) -> None:
        """In a wide terminal all parts are there: only the focus moves."""
        tabs = self.query_one(Tabs)
        if tabs.active == f"tab-{name}":
            self._focus(name)
        tabs.active = f"tab-{name}"

    def action_legend(self) -> None:
        self.query_one(CompareLegend).focus()

    @on(CompareLegend.Toggled)
    def _toggle(self, message: CompareLegend.Toggled) -> None:
        self._source.toggle(message.place)
        self.panel.look_at_once()
        self._show()

    @on(OptionList.OptionSelected)
    def _open(self, event: OptionList.OptionSelected) -> None:
        if self._source.comparison.runs[event.option_index].state == "gone":
            self.notify("The run was deleted.", severity="warning", markup=False)
        else:
            self.post_message(self.Open(self._runs[event.option_index]))

    def action_back(self) -> None:
        self.post_message(self.Back())
