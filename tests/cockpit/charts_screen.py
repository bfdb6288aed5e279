"""The charts of a log with nothing beside them, so that they can be driven without a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Static

from cockpit.core.series import Mark, MetricSource
from cockpit.core.text import plain
from cockpit.screens.palette import ActionProvider
from cockpit.widgets.charts_panel import ChartsPanel
from cockpit.widgets.footer import Footer
from cockpit.widgets.heading import heading


class ChartsScreen(Screen[None]):
    COMMANDS = {ActionProvider}
    AUTO_FOCUS = ""  # the panel's business
    BINDINGS = [Binding("escape", "back", "back", id="charts.back", tooltip="Back to where you came from")]

    def __init__(self, source: MetricSource, marks: Callable[[], Sequence[Mark]] = tuple) -> None:
        """`marks` is asked in the thread in which `source` is polled."""
        super().__init__()
        self._source, self._marks = source, marks

    def compose(self) -> ComposeResult:
        yield Static(heading("Charts", (plain(self._source.title), "$quiet")), id="title", markup=False)
        yield ChartsPanel(self._source, self._marks)
        yield Footer()

    @property
    def panel(self) -> ChartsPanel:
        return self.query_one(ChartsPanel)

    def on_screen_suspend(self) -> None:
        self.panel.following = False

    def on_screen_resume(self) -> None:
        self.panel.following = True

    def action_back(self) -> None:
        self.dismiss()
