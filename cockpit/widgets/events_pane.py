"""All events of a run, with keys to choose a kind and to search."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical

from cockpit.core.run.model import RunModel
from cockpit.core.run.notable import CHOICES
from cockpit.widgets.events_view import EventsView
from cockpit.widgets.filter_line import FilterLine
from cockpit.widgets.searchable import Searchable, find_key


class EventsPane(Vertical, Searchable):
    DEFAULT_CSS = "EventsPane EventsView { height: 1fr; display: block; }"
    BINDINGS = [
        Binding("v", "kind", "kind", id="events.kind",
                tooltip="Show all but phases, commands, alerts, checkpoints, best epochs, starts and ends, or phases"),
        find_key("events.search", "Filter events by words"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__(id="events-pane")
        self._choice = CHOICES[0]

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
        self.seek()

    def seek(self) -> None:
        self.view.choose(self._choice, self.sought)
