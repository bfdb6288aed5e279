"""Searching what a pane shows: `/` opens the filter line under it."""

from __future__ import annotations

from textual import on
from textual.binding import Binding
from textual.widget import Widget

from cockpit.core.text_filter import TextFilter
from cockpit.widgets.filter_line import FilterLine


def find_key(id: str, tooltip: str) -> Binding:
    """The key of every search; `id` is what a person's own keys are given to."""
    return Binding("slash", "search", "find", id=id, tooltip=tooltip)


class Searchable(Widget):
    """For a pane that composes a `FilterLine`, binds its `find_key`, and in `seek` shows what comes of `sought`."""

    sought = TextFilter()

    def seek(self) -> None:
        """Something else is sought."""
        raise NotImplementedError

    def action_search(self) -> None:
        self.query_one(FilterLine).open()

    @on(FilterLine.Changed)
    def _take_filter(self, message: FilterLine.Changed) -> None:
        message.stop()
        self.sought = message.filter
        self.seek()
