"""All events of a run, with keys to choose a kind and to search."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from cockpit.core.run.model import RunModel
from cockpit.core.run.notable import CHOICES
from cockpit.core.runs.run_filter import RunFilter
from cockpit.widgets.events_view import EventsView
from cockpit.widgets.filter_line import FilterLine


class EventsPane(Vertical):
    DEFAULT_CSS = "EventsPane EventsView { height: 1fr; display: block; }"
    BINDINGS = [
        Binding("v", "kind", "kind", id="events.kind",
                tooltip="All but phases; commands; alerts; checkpoints; best epochs; starts and ends; phases"),
        Binding("slash", "search", "find", id="events.search", tooltip="Only events with these words"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__(id="events-pane")
        self._choice = CHOICES[0]
        self._sought = RunFilter()

    def compose(self) -> ComposeResult:
        yield EventsView()
        yield FilterLine()

    @property
    def view(self) -> EventsView:
        return self.query_one(EventsView)

    def show(self, model: RunModel) -> None:
        """Take what happened so far."""
        self.view.show(model)

    def action_kind(self) -> None:
        self._choice = CHOICES[(CHOICES.index(self._choice) + 1) % len(CHOICES)]
        self.view.choose(self._choice, self._sought)

    def action_search(self) -> None:
        self.query_one(FilterLine).open()

    @on(FilterLine.Changed)
    def _search(self, message: FilterLine.Changed) -> None:
        message.stop()
        self._sought = message.filter
        self.view.choose(self._choice, self._sought)

    @on(FilterLine.Done)
    def _searched(self, message: FilterLine.Done) -> None:
        message.stop()
        self.view.focus()
